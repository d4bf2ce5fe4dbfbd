// Plans of folded grids, against the positions of points: the value of a copy is that of the point at the image of its
// position, negated for fields that change their sign.
#include <gtest/gtest.h>

#include <optional>

#include "haloscope/error.hpp"
#include "simulated_plans.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using namespace test;

/// A point of a folded grid, as its position in half cells.
struct Position {
  std::array<std::int64_t, 3> at{};
};

Position position_of(const Quantity& field, const Index& global) {
  Position position;
  for (int d = 0; d < 3; ++d)
    position.at[d] = 2 * global[d] + (staggered(field.centring, d) != 0 ? 0 : field.on_high_face[d] ? 2 : 1);
  return position;
}

/// Returns the position across the fold.
Position image_of(const GridSpec& grid, Position position) {
  const std::int64_t pivot = grid.fold == Fold::cell ? 1 : 0, top = 2 * grid.cells[1] - pivot;
  position.at[0] = 2 * pivot - position.at[0];
  position.at[1] = 2 * top - position.at[1];
  return position;
}

std::int64_t around(std::int64_t number, std::int64_t extent) { return ((number % extent) + extent) % extent; }

/// A value, and whether the fold makes it a copy.
struct Value {
  double number;
  bool is_copy;
};

/// Returns the value of a point: a function of its position, and of the original's position for a copy; nothing beyond
/// edges that are not folded.
std::optional<Value> value_at(const GridSpec& grid, const Quantity& field, const Index& global) {
  Position own = position_of(field, global), other = image_of(grid, own);
  const std::int64_t fold = 2 * grid.cells[1] - (grid.fold == Fold::cell ? 1 : 0);
  for (Position* one : {&own, &other})
    for (int d = 0; d < grid.dims; ++d)
      if (grid.periodic[d]) one->at[d] = around(one->at[d], 2 * grid.cells[d]);
  const bool half = field.on_high_face[0] && staggered(field.centring, 0) == 0;  // whose last point lies at 0
  const auto along = [&](const Position& p) { return half ? around(p.at[0] - 2, 2 * grid.cells[0]) : p.at[0]; };
  const bool copy = own.at[1] > fold || (own.at[1] == fold && along(own) > along(other));
  const Position& from = copy ? other : own;
  if (global[1] < 0) return std::nullopt;
  for (int d = 2; d < grid.dims; ++d)
    if (!grid.periodic[d] && (from.at[d] < 0 || from.at[d] > 2 * grid.cells[d])) return std::nullopt;
  const double value = 1.0 + static_cast<double>(from.at[0]) + 100.0 * static_cast<double>(from.at[1]) +
                       1e4 * static_cast<double>(from.at[2]);
  return Value{copy && field.edges[1].high == Edge::odd ? -value : value, copy};
}

GridSpec random_folded_grid(std::mt19937& random) {
  GridSpec grid{.dims = pick(random, 2, 3), .cells = {1, 1, 1}, .periodic = {true, false, false}};
  for (int d = 0; d < grid.dims; ++d) grid.cells[d] = pick(random, 4, 9);
  grid.periodic[2] = grid.dims == 3 && pick(random, 0, 1) != 0;
  grid.fold = pick(random, 0, 1) != 0 ? Fold::node : Fold::cell;
  return grid;
}

ExchangeSpec random_fields(std::mt19937& random, const GridSpec& grid) {
  ExchangeSpec spec = three_fields(random, grid);
  for (std::size_t q = 0; q < spec.quantities.size(); ++q) {
    Quantity& field = spec.quantities[q];
    field.edges = {};
    if (pick(random, 0, 1) != 0) field.edges[1].high = Edge::odd;
    for (int d = 0; d < 2; ++d) field.on_high_face[d] = staggered(field.centring, d) == 0 && pick(random, 0, 1) != 0;
    for (int d = 0; d < grid.dims; ++d) {
      spec.widths[q].low[d] = pick(random, 0, 2);
      spec.widths[q].high[d] = pick(random, 0, 2);
    }
  }
  spec.beyond = true;
  spec.corners = pick(random, 0, 1) != 0;
  spec.pattern = static_cast<Pattern>(pick(random, 0, 1));
  spec.merge = static_cast<Merge>(pick(random, 0, 4));
  return spec;
}

TEST(Fold, EachCopyHasTheValueOfItsOriginal) {
  std::mt19937 random(61);
  std::int64_t compared = 0, copies = 0;
  for (int n = 0; n < 200; ++n) {
    const GridSpec grid = random_folded_grid(random);
    const Layout layout = random_deal(random, grid, pick(random, 1, 6), 12, false);
    const ExchangeSpec spec = random_fields(random, grid);
    SimulatedPlans plans(layout, spec);
    const auto for_points = [&](const auto& visit) {
      for (int block = 0; block < layout.by_block().size(); ++block) {
        if (!layout.by_block().owns_cells(block)) continue;
        const int rank = layout.rank_of_block(block), first = (block - layout.first_block(rank)) * 3;
        const Index origin = layout.by_block().owned(block).lo;
        for (int q = first; q < first + 3; ++q) {
          const Box owned = plans.plan(rank).owned(q), all = plans.plan(rank).allocated(q);
          each_point(all, [&](const Index& p) {
            const Index global{p[0] + origin[0], p[1] + origin[1], p[2] + origin[2]};
            int outside = 0;
            for (int d = 0; d < 3; ++d) outside += p[d] < owned.lo[d] || p[d] >= owned.hi[d];
            visit(plans.at(rank, q, p), spec.quantities[q - first], global, outside);
          });
        }
      }
    };
    for_points([&](double& value, const Quantity& field, const Index& global, int outside) {
      const auto right = value_at(grid, field, global);
      value = outside > 0 || !right || right->is_copy ? -1e9 : right->number;
    });
    plans.run();
    for_points([&](double value, const Quantity& field, const Index& global, int outside) {
      const auto right = value_at(grid, field, global);
      if (!right || (outside > 1 && !spec.corners)) return;
      ASSERT_EQ(value, right->number) << "case " << n << ", " << field.name << " at " << global[0] << ", " << global[1]
                                      << ", " << global[2];
      ++compared;
      copies += right->is_copy;
    });
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 100000);
  EXPECT_GT(copies, 10000);
}

}  // namespace
}  // namespace haloscope
