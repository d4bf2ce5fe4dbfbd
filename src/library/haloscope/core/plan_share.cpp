// Points of nodes and faces that several ranks hold, where blocks meet, and their owners: the rank whose cell begins at
// the point, in each dimension; where the grid ends there, or has a hole, the next of the blocks around the point, in
// an order that is the same for all of them.
#include <utility>

#include "haloscope/core/plan_rounds.hpp"

namespace haloscope {
namespace {

/// The level of some points in a rank's block, per dimension: on its first plane, between the planes that it shares,
/// on its last plane.
enum class Level : std::uint8_t { first, between, last };
using Levels = std::array<Level, 3>;

/// Returns all combinations of levels of a quantity's points.
std::vector<Levels> levels_of(const Quantity& quantity, int dims) {
  std::vector<Levels> all{{Level::between, Level::between, Level::between}};
  for (int d = 0; d < dims; ++d) {
    if (staggered(quantity.centring, d) == 0) continue;
    for (std::size_t n = 0, known = all.size(); n < known; ++n)
      for (const Level level : {Level::first, Level::last}) {
        all.push_back(all[n]);
        all.back()[d] = level;
      }
  }
  return all;
}

/// Returns the points of a quantity at some levels of a block.
Box points_at(const Levels& levels, const Quantity& quantity, const Index& cells, int dims) {
  Box box{{0, 0, 0}, cells};
  for (int d = 0; d < dims; ++d) {
    if (staggered(quantity.centring, d) == 0) continue;
    box.lo[d] = levels[d] == Level::last ? cells[d] : levels[d] == Level::first ? 0 : 1;
    box.hi[d] = levels[d] == Level::between ? cells[d] : box.lo[d] + 1;
  }
  return box;
}

/// Returns the offset of the owner of points from a rank that holds them; zero: the rank itself.
Offset owner_of(const Layout& layout, int rank, const Levels& levels) {
  for (int lower = 0; lower < 8; ++lower) {  // a bit per dimension: the block below the points, not above them
    Offset v{};
    bool holds = true;
    for (int d = 0; d < 3; ++d) {
      const bool below = (lower >> d & 1) != 0;
      if (levels[d] == Level::between) holds = holds && !below;
      if (levels[d] == Level::first) v[d] = below ? -1 : 0;
      if (levels[d] == Level::last) v[d] = below ? 0 : 1;
    }
    if (holds && layout.neighbour(rank, v) >= 0) return v;
  }
  return {};
}

}  // namespace

std::vector<Box> shared_boxes(const Layout& layout, int holder, const Quantity& quantity, const Offset& owner) {
  const Index cells = layout.local_cells(holder);
  std::vector<Box> boxes;
  for (const Levels& levels : levels_of(quantity, layout.dims()))
    if (owner_of(layout, holder, levels) == owner)
      if (const Box box = points_at(levels, quantity, cells, layout.dims()); !box.empty()) boxes.push_back(box);
  return boxes;
}

std::vector<Box> owned_once(const Layout& layout, int rank, const Quantity& quantity) {
  if (!layout.owns_cells(rank)) return {};
  if (layout.has_holes()) return shared_boxes(layout, rank, quantity, {});
  Box box{{0, 0, 0}, layout.local_cells(rank)};
  for (int d = 0; d < layout.dims(); ++d) {
    Offset above{};
    above[d] = 1;
    if (staggered(quantity.centring, d) != 0 && layout.neighbour(rank, above) < 0) ++box.hi[d];
  }
  return {box};
}

}  // namespace haloscope
