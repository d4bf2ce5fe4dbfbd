// Grids that meet themselves: points come from any ranks, see plan_any_ranks.cpp, and from panels in which directions
// are others. They arrive in turned fields, the same memory with strides of other dimensions or signs: both ends of a
// message then list points in the same order.
#include <algorithm>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

std::string direction(int d) { return std::string(1, "xyz"[d]); }

/// Returns true if a turn negates a field: one with an odd edge at a fold, or a component of a vector.
bool is_negated(const GridSpec& grid, const Quantity& quantity, const Turn& turn) {
  const bool is_opposite = quantity.vector != 0 && turn[static_cast<std::size_t>(quantity.along)] < 0;
  return is_opposite || (grid.fold != Fold::none && quantity.edges[1].high == Edge::odd);
}

void check_widths(const GridSpec& grid, const std::string& name, const ExchangeSpec::Sides& sides) {
  std::int64_t smallest = grid.cells[0] + grid.cells[1], widest = 0;
  for (const Seam& seam : grid.panels.seams)
    for (const int panel : {seam.first.panel, seam.second.panel})
      smallest = std::min({smallest, grid.panel(panel).extent(0), grid.panel(panel).extent(1)});
  for (const int d : {0, 1}) widest = std::max<std::int64_t>({widest, sides.low[d], sides.high[d]});
  if (widest > smallest)
    throw UsageError("field '" + name + "' has " + std::to_string(widest) + " layers, and the smallest panel has " +
                     std::to_string(smallest) + " cells in x or y; use fewer layers, or larger panels");
}

/// @throws UsageError for a field that is not where its points come from after a turn.
void check_turn(const std::vector<Quantity>& fields, int q, const Turn& turn) {
  const Quantity& field = fields[static_cast<std::size_t>(q)];
  const int other = field_across(fields, q, turn);
  if (other < 0)
    throw UsageError("field '" + field.name + "' is component " + direction(field.along) +
                     " of a vector, which is component " + direction(dimension_there(turn, field.along)) +
                     " across a seam, and the exchange has no such field; exchange the components together");
  const Quantity& there = fields[static_cast<std::size_t>(other)];
  if (there.element_bytes != field.element_bytes || there.type != field.type || there.slots != field.slots)
    throw UsageError("fields '" + field.name + "' and '" + there.name +
                     "' are components of a vector and have points of different types; use one type");
  for (const int d : {0, 1, 2})
    if ((half_cells(field, d) - half_cells(there, dimension_there(turn, d))) % 2 != 0)
      throw UsageError("field '" + field.name + "' has values on faces in " +
                       direction(half_cells(field, d) % 2 == 0 ? d : dimension_there(turn, d)) +
                       ", and across a seam " +
                       (other == q ? "these are faces in the other direction; make it a component of a vector"
                                   : "'" + there.name +
                                         "' has none on these faces; give the components of a vector "
                                         "values on faces across their directions"));
}

/// @throws UsageError for a motion that a fold or seam excludes.
void check_motion(bool folded, Motion motion) {
  if (motion == Motion::fill) return;
  const std::string meeting = folded ? "fold" : "seam";
  throw UsageError(std::string("the grid ") + (folded ? "is folded" : "has seams") + ", and " +
                   (motion == Motion::share ? "shares" : "accumulations") + " do not move points across a " + meeting +
                   "; exchange halos, or use a grid without a " + meeting);
}

/// @throws UsageError for a component that a vector has twice.
void check_components(const std::vector<Quantity>& fields) {
  for (std::size_t q = 0; q < fields.size(); ++q)
    for (std::size_t other = 0; other < q; ++other)
      if (fields[q].vector != 0 && fields[q].vector == fields[other].vector && fields[q].along == fields[other].along)
        throw UsageError("fields '" + fields[other].name + "' and '" + fields[q].name + "' are both component " +
                         direction(fields[q].along) + " of one vector; give each vector a number or name of its own");
}

/// @throws UsageError for a field that a fold or seam excludes.
void check_field(const GridSpec& grid, const Quantity& field, const ExchangeSpec::Sides& sides) {
  if (sides.rows_low != Widths{} || sides.rows_high != Widths{})
    throw UsageError("field '" + field.name + "' has ghost rows, and the grid " +
                     (grid.fold != Fold::none ? "is folded" : "has seams") + "; give it a halo instead");
  for (const int d : {0, 1})
    if (field.on_high_face[d] && staggered(field.centring, d) != 0)
      throw UsageError("field '" + field.name + "' has values on high faces in " + direction(d) +
                       ", where it is staggered, so that it has values on all faces; use one of both");
  const bool negatable = field.type == ScalarType::real && (field.element_bytes == 4 || field.element_bytes == 8);
  if (field.vector != 0 && !negatable)
    throw UsageError("field '" + field.name +
                     "' is a component of a vector, and only reals of 4 or 8 bytes can be negated");
}

}  // namespace

int field_across(const std::vector<Quantity>& fields, int q, const Turn& turn) {
  const Quantity& field = fields[static_cast<std::size_t>(q)];
  const int along = dimension_there(turn, field.along);
  if (field.vector == 0 || along == field.along) return q;
  for (int other = 0; other < static_cast<int>(fields.size()); ++other)
    if (const Quantity& one = fields[static_cast<std::size_t>(other)]; one.vector == field.vector && one.along == along)
      return other;
  return -1;
}

Region Plan::in_field(const Region& region) const {
  const Quantity& quantity = spec.quantities[static_cast<std::size_t>(region.quantity)];
  return quantity.turns < 0 ? region : Region{quantity.turns, turned(region.box, inverse(quantity.turn))};
}

void append_turned_fields(Plan& plan, const GridSpec& grid) {
  for (const Turn& turn : turns_of(grid)) {
    const std::size_t first = plan.spec.quantities.size();
    append_for_fields(plan, &Quantity::turns);
    for (std::size_t q = first; q < plan.spec.quantities.size(); ++q) plan.spec.quantities[q].turn = turn;
  }
  std::vector<Copy> negations;
  const auto negate = [&](const Region& region) {
    const Quantity& quantity = plan.spec.quantities[static_cast<std::size_t>(region.quantity)];
    if (quantity.turns < 0 || !is_negated(grid, quantity, quantity.turn)) return;
    const Region in = plan.in_field(region);
    negations.push_back({.quantity = in.quantity, .round = plan.rounds, .to = in.box, .negate = true});
  };
  for (const Message& message : plan.messages)
    if (!message.out) std::for_each(message.regions.begin(), message.regions.end(), negate);
  for (const Copy& copy : plan.copies) negate({copy.quantity, copy.to});
  plan.copies.insert(plan.copies.end(), negations.begin(), negations.end());
}

void check_meetings(const Layout& layout, const ExchangeSpec& spec) {
  const GridSpec& grid = layout.grid();
  const std::vector<Quantity> fields(spec.quantities.begin(), spec.quantities.begin() + quantities_of_block(spec));
  if (spec.motion == Motion::redistribute)
    for (const Quantity& field : fields) require_apart_panels(grid, field, "redistributions move");
  if (!grid.meets_itself() || spec.motion == Motion::redistribute) return;
  const bool folded = grid.fold != Fold::none;
  check_motion(folded, spec.motion);
  check_components(fields);
  const std::vector<Turn> turns = turns_of(grid);
  for (int q = 0; q < static_cast<int>(fields.size()); ++q) {
    const Quantity& field = fields[static_cast<std::size_t>(q)];
    const ExchangeSpec::Sides sides = spec.sides_of(q);
    check_field(grid, field, sides);
    if (std::max({sides.low[0], sides.low[1], sides.high[0], sides.high[1]}) == 0) continue;  // nothing crosses
    if (!folded) check_widths(grid, field.name, sides);
    for (const Turn& turn : turns) check_turn(fields, q, turn);
  }
  if (folded) check_fold(grid, spec);
}

}  // namespace haloscope
