#include "haloscope/core/outline.hpp"

#include "haloscope/core/text.hpp"

namespace haloscope {

std::string outline(const Plan& plan, const Layout& layout, std::size_t slots) {
  TextStream text;
  const auto three = [&](const auto& numbers) {
    for (const auto number : numbers) text << number << ' ';
  };
  const ExchangeSpec& spec = plan.spec;
  three(layout.grid().cells);
  three(layout.grid().periodic);
  three(layout.ranks());
  three(spec.order);
  text << static_cast<int>(spec.pattern) << ' ' << spec.corners << ' ' << spec.merge_peers << ' '
       << static_cast<int>(spec.merge) << ' ' << spec.reverse << ' ' << slots;
  for (std::size_t q = 0; q < spec.quantities.size(); ++q) {
    const Quantity& quantity = spec.quantities[q];
    text << "; " << quantity.element_bytes << ' ' << static_cast<int>(quantity.type) << ' ' << quantity.number_bytes
         << ' ' << static_cast<int>(quantity.centring) << ' ';
    three(spec.low_of(static_cast<int>(q)));
    three(spec.high_of(static_cast<int>(q)));
  }
  return text.str();
}

}  // namespace haloscope
