#include "haloscope/core/outline.hpp"

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/core/text.hpp"

namespace haloscope {

std::string outline(const Plan& plan, const Layout& layout, std::size_t slots) {
  TextStream text;
  const auto three = [&](const auto& numbers) {
    for (const auto number : numbers) text << number << ' ';
  };
  const ExchangeSpec spec = as_requested(plan.spec);
  three(layout.grid().cells);
  three(layout.grid().periodic);
  three(layout.ranks());
  text << static_cast<int>(layout.grid().fold) << ' ' << panels_text(layout.grid().panels);
  if (spec.onto) three(spec.onto->ranks());
  three(spec.order);
  text << static_cast<int>(spec.pattern) << ' ' << spec.corners << ' ' << spec.merge_peers << ' '
       << static_cast<int>(spec.merge) << ' ' << static_cast<int>(spec.motion) << ' ' << slots;
  if (layout.has_several_blocks()) text << "; " << layout.blocks() << " blocks";
  for (std::size_t q = 0; q < spec.quantities.size(); ++q) {
    const Quantity& quantity = spec.quantities[q];
    text << "; " << quantity.element_bytes << ' ' << static_cast<int>(quantity.type) << ' ' << quantity.number_bytes
         << ' ' << static_cast<int>(quantity.centring) << ' ' << quantity.vector << ' ';
    const ExchangeSpec::Sides sides = spec.sides_of(static_cast<int>(q));
    for (const Widths& layers : {sides.low, sides.high, sides.rows_low, sides.rows_high}) three(layers);
  }
  return text.str();
}

}  // namespace haloscope
