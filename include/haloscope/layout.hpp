// Splits of a global grid over ranks: process grids by named rule, the remainder rule, neighbours. No MPI.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/box.hpp"
#include "haloscope/extend/words.hpp"

namespace haloscope {

/// The fold of a grid: the high edge of y meets itself, so that the rows beyond it are inner rows in reverse, as at the
/// north of tripolar ocean grids. It turns about nodes of cells (F pivot), or about centres of cells in the last row
/// (T pivot).
enum class Fold : std::uint8_t { none, node, cell };
HALOSCOPE_WORDS(Fold, "fold", "none", "node", "cell");

/// An edge of a panel: its side (0 low, 1 high) of dimension d, x or y.
struct PanelEdge {
  int panel = 0;
  int d = 0;
  int side = 0;
  bool operator==(const PanelEdge&) const = default;
};

/// Two edges of panels that meet, with as many cells each: the cells beyond one are the cells inside the other.
struct Seam {
  PanelEdge first, second;
  bool reversed = false;  ///< the first cell along one edge is the last one along the other
  bool operator==(const Seam&) const = default;
};

/// The panels of a grid, blocks of cells that meet only at seams, turned against each other or not.
struct Panels {
  std::vector<Box> boxes;  ///< cells of each panel, in global coordinates; in 3D from end to end of z. None: one panel
  std::vector<Seam> seams;
  bool operator==(const Panels&) const = default;
};

/// Returns the six faces of a cube of `edge` x `edge` cells each, in a row in x, which fit a grid of `6 * edge` x
/// `edge` x `levels` cells, and their seams. Of faces 0, 2, 4 the high x edge meets the low x edge of the next face,
/// and the high y edge the low x edge of the next but one, reversed. Of faces 1, 3, 5 the high y edge meets the low y
/// edge of the next face, and the high x edge the low y edge of the next but one, reversed.
/// Source: the order of MITgcm's cubed spheres (Adcroft et al. 2004). @throws UsageError for less than 1 cell.
Panels cubed_sphere(std::int64_t edge, std::int64_t levels = 1);

/// The global grid. `cells[d]` >= 1 counts cells in dimension d; dimensions >= `dims` must have 1 cell.
struct GridSpec {
  int dims = 3;
  Index cells{1, 1, 1};
  std::array<bool, 3> periodic{false, false, false};
  Fold fold = Fold::none;  ///< of the high edge of y, in a grid that is periodic in x and not in y
  Panels panels{};         ///< of a grid that is not periodic in x and y
  /// Returns true if some rank's cells are next to a fold or a seam at this side (0 low, 1 high) of dimension d.
  bool meets_itself(int d, int side) const;
  /// Returns true if the grid has a fold or seams.
  bool meets_itself() const { return fold != Fold::none || !panels.seams.empty(); }
  /// Returns the panel of a cell; -1: it is in none.
  int panel_at(const Index& cell) const;
  /// Returns the cells of a panel; without panels, all.
  Box panel(int number) const;
  bool operator==(const GridSpec&) const = default;
};

/// Ranks per dimension (x, y, z).
using ProcessGrid = std::array<int, 3>;

/// Returns the rules that choose a process grid, in the order in which help texts list them.
const std::vector<std::string>& process_grid_rules();

/// Returns the process grid for `ranks` ranks.
/// @param rule  "cubic" (blocks as close to cubes as possible, largest extent in x), "square" (2D: the process grid
///              as close to a square as the cells allow, height <= length if both fit), "prime-factors" (each prime
///              factor, largest first, to the dimension with most cells, ties z, y, x), "slabs" (blocks of whole lines
///              or planes: all ranks in the slowest dimension), or explicit as "2x3" / "2x3x1" (x, y, z).
/// @throws UsageError for an unknown rule, a product that is not `ranks`, or more ranks than cells in a dimension.
/// Local; O(divisors of ranks squared).
ProcessGrid process_grid(const std::string& rule, int ranks, const GridSpec& grid);

/// Returns the number of ranks that own cells.
/// @param requested  0: all; where no process grid of all ranks fits the cells, the largest number that fits. An
///                   explicit process grid takes all.
/// @throws UsageError for a negative number, for more than `ranks`, and as process_grid() does.
int active_ranks(int requested, int ranks, const std::string& rule, const GridSpec& grid);

/// The dimensions of a process grid, starting with the one along which rank numbers run fastest.
using RankOrder = std::array<int, 3>;

/// A grid split over a process grid: each position holds the block of one rank, or a hole (land, for example). Some
/// ranks may own no cells: they take part in collective calls, and move nothing. Ranks may also own several blocks
/// each, see of_blocks().
class Layout {
 public:
  /// Makes blocks as even as possible, without holes. Remainder rule: with r = cells mod ranks in a dimension, the
  /// first r ranks of that dimension own one cell more.
  /// @param order  {0, 1, 2}: rank numbers run x fastest, then y, then z; {2, 1, 0}: z fastest, as in
  ///         MPI_Cart_create.
  /// @throws UsageError for cells < 1, ranks < 1, more ranks than cells in a dimension, dims outside 1..3, an order
  ///         that does not name 0, 1 and 2 once each.
  Layout(const GridSpec& grid, const ProcessGrid& ranks, const RankOrder& order = {0, 1, 2});
  /// Rank r owns the cells `owned[r]`, in global coordinates; an empty box: none. Blocks may be uneven but must line
  /// up: no plane that ends one of them cuts another.
  /// @param holes  true: cells may belong to no rank.
  /// @throws UsageError naming the cell that belongs to two ranks, to none, or is outside the grid; the plane that cuts
  ///         a block; where no rank owns cells. Cost: O(ranks log ranks), local.
  Layout(const GridSpec& grid, const std::vector<Box>& owned, bool holes = false);
  /// Returns a layout in which rank r owns the blocks `owned[r]`, in global coordinates; none: an empty list. Blocks
  /// may be uneven but must line up, as above. Where a rank has several, the calls below that name a rank and a place
  /// throw UsageError: by_block() has the places.
  /// @throws UsageError as above, and for an empty block among several. Cost: O(blocks log blocks), local.
  static Layout of_blocks(const GridSpec& grid, const std::vector<std::vector<Box>>& owned, bool holes = false);
  /// Returns the same blocks, with rank r owning the block of rank `from[r]` here.
  /// @throws UsageError unless `from` names each rank once. Cost: O(ranks log ranks), local.
  Layout renumbered(const std::vector<int>& from) const;
  /// Returns the same blocks in a communicator of `ranks` ranks, of which the last ones own no cells.
  /// @throws UsageError for fewer ranks than this layout has. Local.
  Layout with_idle_ranks(int ranks) const;

  /// Returns the same split of a folded grid.
  /// @throws UsageError for a fold of a grid that is not periodic in x, is periodic in y or lacks y. Local.
  Layout folded(Fold fold) const;
  /// Returns the same split of a grid of panels, which meet at seams.
  /// @throws UsageError for panels that overlap or lie outside the grid, a block of several panels or of none, a seam
  ///         of edges that do not exist, differ in length or have another seam, and a grid that is periodic in x or y,
  ///         folded or 1D. Cost: O(blocks * panels), local.
  Layout joined(const Panels& panels) const;

  const GridSpec& grid() const { return grid_; }
  const ProcessGrid& ranks() const { return ranks_; }
  int dims() const { return grid_.dims; }
  /// Returns the number of ranks, those without cells included.
  int size() const { return size_; }
  /// Returns a number that is the same for equal grids and splits, and hardly ever for others.
  /// Cost: O(cuts); of layouts of boxes O(blocks). Local.
  std::uint64_t number() const;
  /// Returns the number of blocks of all ranks.
  int blocks() const { return blocks_; }
  /// Returns true if some rank has several blocks.
  bool has_several_blocks() const { return !by_block_.empty(); }
  /// Returns the number of blocks of a rank.
  int blocks_of(int rank) const {
    return has_several_blocks() ? first_block_[index(rank) + 1] - first_block_[index(rank)] : owns_cells(rank);
  }
  /// Returns the layout in which each block is the only one of a rank: blocks are numbered rank by rank, and this is
  /// the number of the rank. Without several blocks: this layout.
  const Layout& by_block() const { return has_several_blocks() ? by_block_.front() : *this; }
  /// Returns the number of the first block of a rank in by_block(). A rank without cells: of the next rank.
  int first_block(int rank) const { return has_several_blocks() ? first_block_[index(rank)] : rank; }
  /// Returns the number of a block of a rank in by_block(). @throws UsageError for one that the rank does not have.
  int number_of_block(int rank, int block) const;
  /// Returns the rank that owns a block of by_block().
  int rank_of_block(int block) const;
  bool owns_cells(int rank) const {
    if (has_several_blocks()) return blocks_of(rank) > 0;
    return place_of_.empty() ? rank < blocks_ : place_of_[index(rank)] >= 0;
  }
  /// Returns true if some cells of the grid, or of its panels, belong to no rank.
  bool has_holes() const { return has_holes_; }
  /// Checks a rank. @throws UsageError unless `rank` is one of 0..size()-1.
  void require_rank(int rank) const;
  /// Returns the position of a rank; -1 in each dimension for one without cells.
  std::array<int, 3> coords(int rank) const;
  /// Returns the rank at a position; -1: a hole.
  int rank_at(const std::array<int, 3>& coords) const;
  /// Returns the cells owned by `rank`, in global coordinates; an empty box for a rank without cells.
  Box owned(int rank) const;
  /// Returns the number of cells owned by `rank`, per dimension.
  Index local_cells(int rank) const;
  /// Returns the first cell of each position of the process grid in dimension d, and the end.
  const std::vector<std::int64_t>& cuts(int d) const { return cuts_[static_cast<std::size_t>(d)]; }
  /// Returns the smallest local extent of any rank with cells in dimension d.
  std::int64_t smallest_extent(int d) const { return smallest_[static_cast<std::size_t>(d)]; }
  /// Returns the rank at `offset` (each -1, 0, +1) from `rank`; -1 beyond a non-periodic edge, a fold or a seam, in a
  /// hole, and for a rank without cells. May be `rank` itself.
  int neighbour(int rank, const std::array<int, 3>& offset) const;
  /// Returns true if a rank borders on `rank` on this side (0 low, 1 high) of dimension d, even if only at an edge or
  /// corner, next to a hole, or across a fold or seam. May be `rank` itself.
  bool has_neighbour(int rank, int d, int side) const;
  /// Returns true if the grid, or the panel of a rank's cells, ends at this side of them, and neither wraps around nor
  /// meets itself there.
  bool is_at_edge(int rank, int d, int side) const;
  /// Returns true if the grid meets itself, at a fold or seam, at this side of a rank's cells.
  bool meets_itself(int rank, int d, int side) const;
  /// Returns the rank that owns global cell `cell` (inside the grid); -1 in a hole.
  int owner(const Index& cell) const;
  bool operator==(const Layout&) const = default;

 private:
  Layout(const GridSpec& grid, const std::vector<Box>& owned, bool holes, const std::vector<int>& first_block);
  /// @throws UsageError where ranks have several blocks.
  void require_one_block() const;
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  /// Returns true if some position has no block: a hole, or cells between panels.
  bool has_empty_places() const { return blocks_ != places(); }
  bool has_neighbour_across_seams(int rank, int d, int side) const;
  bool has_owner(const Box& box) const;
  std::int64_t places() const { return std::int64_t{1} * ranks_[0] * ranks_[1] * ranks_[2]; }
  std::int64_t place_at(const std::array<int, 3>& coords) const;
  std::array<int, 3> coords_of(std::int64_t place) const;
  std::array<int, 3> coords_at(const Index& cell) const;
  Box box_at(const std::array<int, 3>& coords) const;
  /// Returns true if the grid, or the panel of a rank's cells, ends at this side of them.
  bool is_last(int rank, int d, int side) const;
  void settle(const std::vector<Box>& owned, const std::vector<int>& first_block);
  void find_smallest();

  GridSpec grid_;
  ProcessGrid ranks_{1, 1, 1};
  int size_ = 1, blocks_ = 1;
  bool has_holes_ = false;
  std::array<std::vector<std::int64_t>, 3> cuts_;  // per dimension: the first cell of each position, and the end
  std::array<int, 3> apart_{};                     // numbers of ranks that are neighbours in a dimension
  // For layouts with arbitrary rank numbers, such as layouts of boxes; positions are numbered x fastest:
  std::vector<std::int64_t> place_of_;                 // by rank; -1: no cells
  std::vector<std::pair<std::int64_t, int>> rank_of_;  // position and rank, by position
  Index smallest_{};
  // Where ranks have several blocks:
  std::vector<Layout> by_block_;  // one; empty: none has
  std::vector<int> first_block_;  // of each rank, and the end
};

}  // namespace haloscope
