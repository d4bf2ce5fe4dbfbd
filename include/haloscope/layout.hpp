// How a global grid is split over ranks: process grids by named rule, the remainder rule, neighbours. No MPI.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "haloscope/box.hpp"

namespace haloscope {

/// The global grid. `cells[d]` >= 1 counts cells in dimension d; dimensions >= `dims` must have 1 cell.
struct GridSpec {
  int dims = 3;
  Index cells{1, 1, 1};
  std::array<bool, 3> periodic{false, false, false};
};

/// Ranks per dimension (x, y, z).
using ProcessGrid = std::array<int, 3>;

/// The rules that choose a process grid, in the order in which help texts list them.
const std::vector<std::string>& process_grid_rules();

/// The process grid for `ranks` ranks.
/// @param rule  "cubic" (blocks as near to cubes as possible, largest extent in x), "square" (2D: the process grid as
///              near to a square as possible, height <= length), "prime-factors" (each prime factor, largest first, to
///              the dimension with most cells, ties z, y, x), "slabs" (blocks of whole lines or planes: all ranks in
///              the slowest dimension), or explicit as "2x3" / "2x3x1" (x, y, z). The studies' names for the same rules
///              are taken too: "white", "valen", "davis", "lines".
/// @throws UsageError for an unknown rule, a product that is not `ranks`, or more ranks than cells in a dimension.
/// Local; O(divisors of ranks squared).
ProcessGrid process_grid(const std::string& rule, int ranks, const GridSpec& grid);

/// A grid split over a process grid. Rank numbers run x fastest, then y, then z. Remainder rule: with r = cells mod
/// ranks in a dimension, the first r ranks of that dimension own one cell more.
class Layout {
 public:
  /// @throws UsageError for cells < 1, ranks < 1, more ranks than cells in a dimension, dims outside 1..3.
  Layout(const GridSpec& grid, const ProcessGrid& ranks);

  const GridSpec& grid() const { return grid_; }
  const ProcessGrid& ranks() const { return ranks_; }
  int dims() const { return grid_.dims; }
  int size() const { return ranks_[0] * ranks_[1] * ranks_[2]; }
  std::array<int, 3> coords(int rank) const;
  int rank_at(const std::array<int, 3>& coords) const;
  /// Cells owned by `rank` in global coordinates.
  Box owned(int rank) const;
  /// Cells owned by `rank`, per dimension.
  Index local_cells(int rank) const;
  /// Smallest local extent of any rank in dimension d.
  std::int64_t smallest_extent(int d) const { return grid_.cells[d] / ranks_[d]; }
  /// The rank at `offset` (each -1, 0, +1) from `rank`, or -1 beyond a non-periodic edge. May be `rank` itself.
  int neighbour(int rank, const std::array<int, 3>& offset) const;
  /// The rank that owns global cell `cell` (inside the grid).
  int owner(const Index& cell) const;

 private:
  GridSpec grid_;
  ProcessGrid ranks_;
};

}  // namespace haloscope
