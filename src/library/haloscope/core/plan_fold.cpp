// Folded grids: the rows beyond the high edge of y are inner rows in reverse. Their points come from any ranks, see
// plan_any_ranks.cpp. They arrive in turned fields, whose points (x, y, z) are the points (-x, -y, z) of a field: both
// ends of a message then list points in the same order.
#include <algorithm>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Returns the distance of a field's points from the low faces of their cells, in half cells.
int half_cells(const Quantity& quantity, int d) {
  return staggered(quantity.centring, d) != 0 ? 0 : quantity.on_high_face[d] ? 2 : 1;
}

/// Returns the sum of the coordinates of a point and of its image. In x, sums that differ by the cells are equal.
std::int64_t image_sum(const GridSpec& grid, const Quantity& quantity, int d) {
  const bool nodes = grid.fold == Fold::node;
  const std::int64_t cells = grid.cells[d];
  return (d == 0 ? (nodes ? cells : 1) : 2 * cells - (nodes ? 0 : 1)) - half_cells(quantity, d);
}

/// Returns the points of a box in x and y, and all points in z.
Box column(const GridSpec& grid, std::int64_t x_lo, std::int64_t x_hi, std::int64_t y_lo, std::int64_t y_hi) {
  return {{x_lo, y_lo, 0}, {x_hi, y_hi, grid.cells[2] + 1}};
}

}  // namespace

Box turned(const Box& box) {
  return {{1 - box.hi[0], 1 - box.hi[1], box.lo[2]}, {1 - box.lo[0], 1 - box.lo[1], box.hi[2]}};
}

Region Plan::in_field(const Region& region) const {
  const int field = spec.quantities[static_cast<std::size_t>(region.quantity)].turns;
  return field < 0 ? region : Region{field, turned(region.box)};
}

Box image_across_fold(const GridSpec& grid, const Quantity& quantity, const Box& box) {
  return shifted(turned(box), {image_sum(grid, quantity, 0), image_sum(grid, quantity, 1), 0});
}

FoldZones zones_of(const GridSpec& grid, const Quantity& quantity) {
  const std::int64_t cells = grid.cells[0], above = image_sum(grid, quantity, 1);
  const std::int64_t first = (above + 1) / 2;  // the row on the fold, or the first one beyond
  FoldZones zones;
  zones.originals = zones.repeated = {column(grid, 0, cells + 1, 0, first)};
  if (above % 2 != 0) return zones;
  const std::int64_t sum = ((image_sum(grid, quantity, 0) % cells) + cells) % cells;
  // Points of the row on the fold are there twice, and the one with the smaller x is the original. Pairs have the sum
  // `sum`, or one that is larger by the cells.
  const auto add = [&](std::int64_t begin, std::int64_t of_pairs) {
    const std::int64_t middle = of_pairs / 2 + 1;
    zones.originals.push_back(column(grid, begin, middle, first, first + 1));
    zones.repeated.push_back(column(grid, begin, of_pairs - middle + 1, first, first + 1));
  };
  add(0, sum);
  add(sum + 1, sum + cells);
  return zones;
}

void append_turned_fields(Plan& plan) {
  append_for_fields(plan, &Quantity::turns);
  std::vector<Copy> negations;
  const auto negate = [&](const Region& region) {
    const Region in = plan.in_field(region);
    if (in.quantity != region.quantity && plan.spec.quantities[in.quantity].edges[1].high == Edge::odd)
      negations.push_back({.quantity = in.quantity, .round = plan.rounds, .to = in.box, .negate = true});
  };
  for (const Message& message : plan.messages)
    if (!message.out) std::for_each(message.regions.begin(), message.regions.end(), negate);
  for (const Copy& copy : plan.copies) negate({copy.quantity, copy.to});
  plan.copies.insert(plan.copies.end(), negations.begin(), negations.end());
}

bool fills_only_fold(const GridSpec& grid, const Quantity& quantity) {
  std::array<Edges, 3> edges = quantity.edges;
  edges[1].high = Edge::fixed;
  for (int d = 0; d < 3; ++d)
    if (grid.periodic[d]) edges[d] = {};
  return grid.fold != Fold::none && edges == std::array<Edges, 3>{};
}

void check_fold(const Layout& layout, const ExchangeSpec& spec) {
  const GridSpec& grid = layout.grid();
  if (grid.fold == Fold::none) return;
  if (spec.motion == Motion::accumulate || spec.motion == Motion::share)
    throw UsageError(std::string("the grid is folded, and ") +
                     (spec.motion == Motion::share ? "shares" : "accumulations") +
                     " do not move points across a fold; exchange halos, or use a grid without a fold");
  for (int q = 0; q < static_cast<int>(spec.quantities.size()); ++q) {
    const Quantity& quantity = spec.quantities[static_cast<std::size_t>(q)];
    const ExchangeSpec::Sides sides = spec.sides_of(q);
    if (quantity.edges[1].high == Edge::nearest)
      throw UsageError("field '" + quantity.name +
                       "' has edge nearest where the grid is folded; use odd for a field that changes its sign there, "
                       "else even or fixed");
    if (sides.rows_low != Widths{} || sides.rows_high != Widths{})
      throw UsageError("field '" + quantity.name + "' has ghost rows, and the grid is folded; give it a halo instead");
    for (int d = 0; d < 2; ++d)
      if (quantity.on_high_face[d] && staggered(quantity.centring, d) != 0)
        throw UsageError("field '" + quantity.name + "' has values on high faces in " + std::string(1, "xyz"[d]) +
                         ", where it is staggered, so that it has values on all faces; use one of both");
    const std::int64_t last = grid.cells[1] + staggered(quantity.centring, 1) + sides.high[1] - 1;
    if (const std::int64_t lacking = last - image_sum(grid, quantity, 1); lacking > 0)
      throw UsageError("field '" + quantity.name + "' has " + std::to_string(sides.high[1]) +
                       " layers beyond the fold, and the images of its last row lie " + std::to_string(lacking) +
                       " rows below the grid; use fewer layers, or a grid of more rows");
  }
}

}  // namespace haloscope
