// Folded grids: the rows beyond the high edge of y are inner rows in reverse. Their points come from any ranks, see
// plan_any_ranks.cpp, and arrive in turned fields, see plan_seams.cpp.
#include <algorithm>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

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

Box image_across_fold(const GridSpec& grid, const Quantity& quantity, const Box& box) {
  return shifted(turned(box, {-1, -2, 3}), {image_sum(grid, quantity, 0), image_sum(grid, quantity, 1), 0});
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
  // Next to a hole at x = 0, the last block owns that column, as its end.
  zones.originals.push_back(column(grid, cells, cells + 1, first, first + 1));
  if (sum > 0) zones.repeated.push_back(column(grid, cells, cells + 1, first, first + 1));
  return zones;
}

bool fills_only_fold(const GridSpec& grid, const Quantity& quantity) {
  std::array<Edges, 3> edges = quantity.edges;
  edges[1].high = Edge::fixed;
  for (int d = 0; d < 3; ++d)
    if (grid.periodic[d]) edges[d] = {};
  return grid.fold != Fold::none && edges == std::array<Edges, 3>{};
}

void check_fold(const GridSpec& grid, const ExchangeSpec& spec) {
  for (int q = 0; q < static_cast<int>(spec.quantities.size()); ++q) {
    const Quantity& quantity = spec.quantities[static_cast<std::size_t>(q)];
    if (quantity.edges[1].high == Edge::nearest)
      throw UsageError("field '" + quantity.name +
                       "' has edge nearest where the grid is folded; use odd for a field that changes its sign there, "
                       "else even or fixed");
    if (quantity.vector != 0 && quantity.edges[1].high == Edge::odd)
      throw UsageError("field '" + quantity.name +
                       "' is odd at the fold and a component of a vector, which gives it its sign; use one of both");
    const int layers = spec.sides_of(q).high[1];
    const std::int64_t last = grid.cells[1] + staggered(quantity.centring, 1) + layers - 1;
    if (const std::int64_t lacking = last - image_sum(grid, quantity, 1); lacking > 0)
      throw UsageError("field '" + quantity.name + "' has " + std::to_string(layers) +
                       " layers beyond the fold, and the images of its last row lie " + std::to_string(lacking) +
                       " rows below the grid; use fewer layers, or a grid of more rows");
  }
}

}  // namespace haloscope
