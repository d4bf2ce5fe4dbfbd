#include "haloscope/layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/panels.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

std::string name_of(int d) { return std::string(1, "xyz"[d]); }

void check_dimensions(const GridSpec& grid) {
  if (grid.dims < 1 || grid.dims > 3)
    throw UsageError("a grid has 1 to 3 dimensions, not " + std::to_string(grid.dims));
  for (int d = 0; d < 3; ++d) {
    if (grid.cells[d] < 1)
      throw UsageError("the grid has " + std::to_string(grid.cells[d]) + " cells in " + name_of(d) +
                       "; every dimension needs at least 1");
    if (d >= grid.dims && grid.cells[d] != 1)
      throw UsageError("a " + std::to_string(grid.dims) + "D grid cannot have cells or ranks in " + name_of(d));
  }
  if (grid.fold != Fold::none && (grid.dims < 2 || !grid.periodic[0] || grid.periodic[1]))
    throw UsageError("a grid folds at the high edge of y onto itself; make it 2D or 3D, periodic in x and not in y");
}

void check_grid(const GridSpec& grid) {
  check_dimensions(grid);
  if (double(grid.cells[0]) * double(grid.cells[1]) * double(grid.cells[2]) > bound.cells.most)
    throw UsageError("a grid of more than 10^15 cells is not possible; use fewer cells");
}

/// Makes blocks as close to cubes as possible: minimum block surface over all factorisations; equal ones resolved
/// towards few ranks in x, then y (White & Dongarra 2011, IV-B).
ProcessGrid cubic(int ranks, const GridSpec& grid) {
  ProcessGrid best{1, 1, 1};
  double best_surface = std::numeric_limits<double>::infinity();
  for (int px = 1; px <= ranks; ++px) {
    if (ranks % px != 0 || px > grid.cells[0]) continue;
    for (int py = 1; py <= ranks / px; ++py) {
      if ((ranks / px) % py != 0 || py > grid.cells[1]) continue;
      const int pz = ranks / px / py;
      if (pz > grid.cells[2]) continue;
      const double x = double(grid.cells[0]) / px, y = double(grid.cells[1]) / py, z = double(grid.cells[2]) / pz;
      const double surface = grid.dims == 3 ? x * y + y * z + z * x : x + y;
      if (surface < best_surface * (1 - 1e-12)) {
        best_surface = surface;
        best = {px, py, pz};
      }
    }
  }
  if (std::isinf(best_surface)) best[grid.dims - 1] = ranks;  // more ranks than cells: Layout reports it
  return best;
}

/// Makes the process grid itself as close to a square as possible, height <= length where the cells allow it. Table 3.2
/// of Valen 2023 has that pair for each of its nine rank counts, so one rule covers all.
ProcessGrid square(int ranks, const GridSpec& grid) {
  if (grid.dims == 1) return {ranks, 1, 1};
  if (grid.dims != 2)
    throw UsageError("process grid rule 'square' is for 2D grids; use cubic, prime-factors, slabs or explicit PxQxR");
  std::vector<int> heights;
  for (int height = static_cast<int>(std::sqrt(static_cast<double>(ranks))); height >= 1; --height)
    if (ranks % height == 0) heights.push_back(height);
  for (const int height : heights) {
    const int length = ranks / height;
    if (length <= grid.cells[0] && height <= grid.cells[1]) return {length, height, 1};
    if (height <= grid.cells[0] && length <= grid.cells[1]) return {height, length, 1};
  }
  return {ranks / heights.front(), heights.front(), 1};  // more ranks than cells: Layout reports it
}

/// Assigns prime factors, largest first, each to the dimension with most cells left (ties z, y, x); dimensions of equal
/// global extent are then sorted so that z has most ranks. Every row of table 4.2 except 2048 ranks and every row of
/// table 5.8 follows this rule (Davis 2017, section 4.2.2).
ProcessGrid prime_factors(int ranks, const GridSpec& grid) {
  std::vector<int> factors;
  for (int rest = ranks, f = 2; rest > 1; ++f)
    for (; rest % f == 0; rest /= f) factors.push_back(f);
  ProcessGrid p{1, 1, 1};
  for (auto f = factors.rbegin(); f != factors.rend(); ++f) {
    int best = grid.dims - 1;
    for (int d = grid.dims - 1; d >= 0; --d)
      if (double(grid.cells[d]) / p[d] > double(grid.cells[best]) / p[best]) best = d;
    p[best] *= *f;
  }
  for (int a = 0; a < grid.dims; ++a)
    for (int b = a + 1; b < grid.dims; ++b)
      if (grid.cells[a] == grid.cells[b] && p[a] > p[b]) std::swap(p[a], p[b]);
  return p;
}

/// Makes blocks of whole lines (planes in 3D): all ranks in the slowest dimension (Schroeter 2021, section 4.2).
ProcessGrid slabs(int ranks, const GridSpec& grid) {
  ProcessGrid p{1, 1, 1};
  p[grid.dims - 1] = ranks;
  return p;
}

ProcessGrid explicit_grid(const std::string& text, int ranks, const GridSpec& grid) {
  ProcessGrid p{1, 1, 1};
  const auto words = split(text, 'x');
  double product = 1;  // of numbers that may be invalid, and large
  for (std::size_t d = 0; d < words.size() && d < 3; ++d) {
    try {
      p[d] = std::stoi(words[d]);
    } catch (const std::exception&) {
      p[d] = 0;
    }
    product *= p[d];
  }
  if (static_cast<int>(words.size()) != grid.dims || product != ranks || p[0] < 1 || p[1] < 1 || p[2] < 1)
    throw UsageError("process grid '" + text + "' is not " + std::to_string(grid.dims) + " factors of " +
                     std::to_string(ranks) + " ranks; give one number per dimension whose product is the rank count, " +
                     "or a rule: " + join(process_grid_rules(), ", "));
  return p;
}

bool is_explicit(const std::string& rule) {
  return !rule.empty() && rule.find_first_not_of("0123456789x") == std::string::npos;
}

struct Rule {
  const char* name;
  ProcessGrid (*split)(int ranks, const GridSpec& grid);
};

constexpr Rule rules[] = {{"cubic", cubic}, {"square", square}, {"prime-factors", prime_factors}, {"slabs", slabs}};

}  // namespace

const std::vector<std::string>& process_grid_rules() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Rule& rule : rules) all.push_back(rule.name);
    return all;
  }();
  return names;
}

ProcessGrid process_grid(const std::string& rule, int ranks, const GridSpec& grid) {
  if (ranks < bound.ranks.least || ranks > bound.ranks.most)
    throw UsageError("a grid cannot be split over " + std::to_string(ranks) + " ranks; use 1 to " +
                     std::to_string(static_cast<int>(bound.ranks.most)));
  check_dimensions(grid);  // rules accept larger grids than can exist
  if (is_explicit(rule)) return explicit_grid(rule, ranks, grid);
  for (const Rule& one : rules)
    if (rule == one.name) return one.split(ranks, grid);
  throw UsageError(unknown_name("process grid rule", rule, process_grid_rules()));
}

int active_ranks(int requested, int ranks, const std::string& rule, const GridSpec& grid) {
  if (requested < 0 || requested > ranks)
    throw UsageError("active_ranks is " + std::to_string(requested) + ", and the communicator has " +
                     std::to_string(ranks) + " ranks; pass the number of ranks that own cells, or 0 for all");
  if (requested != 0 || is_explicit(rule)) return requested != 0 ? requested : ranks;
  const auto fits = [&](int number, const std::string& by) {
    const ProcessGrid split = process_grid(by, number, grid);
    return split[0] <= grid.cells[0] && split[1] <= grid.cells[1] && split[2] <= grid.cells[2];
  };
  if (fits(ranks, rule) || fits(ranks, "cubic")) return ranks;
  const double cells = double(grid.cells[0]) * double(grid.cells[1]) * double(grid.cells[2]);
  int number = static_cast<int>(std::min<double>(ranks, cells));
  while (number > 1 && !fits(number, rule)) --number;
  return number;
}

// ---- layouts --------------------------------------------------------------------------------------------------------

namespace {

void check_ranks(const GridSpec& grid, const ProcessGrid& ranks, const RankOrder& order) {
  for (int d = 0; d < 3; ++d) {
    if (d >= grid.dims && ranks[d] != 1)
      throw UsageError("a " + std::to_string(grid.dims) + "D grid cannot have cells or ranks in " + name_of(d));
    if (ranks[d] < 1 || ranks[d] > grid.cells[d])
      throw UsageError("process grid " + sizes_text(ranks, grid.dims) + " puts " + std::to_string(ranks[d]) +
                       " ranks on " + std::to_string(grid.cells[d]) + " cells in " + name_of(d) +
                       "; use fewer ranks, more cells, or another process grid");
  }
  if (double(ranks[0]) * double(ranks[1]) * double(ranks[2]) > std::numeric_limits<int>::max())
    throw UsageError("process grid " + sizes_text(ranks, grid.dims) +
                     " has more ranks than a communicator can have; use fewer ranks");
  RankOrder sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != RankOrder{0, 1, 2})
    throw UsageError("the order of ranks must name dimensions 0, 1 and 2 once each, as {2, 1, 0}");
}

/// Returns the name of a block's owner. @param first_block  of each rank, and the end; empty: rank r owns block r.
std::string owner_text(int block, const std::vector<int>& first_block) {
  if (first_block.empty()) return "rank " + std::to_string(block);
  const auto next = std::upper_bound(first_block.begin(), first_block.end(), block);
  return "block " + std::to_string(block - *(next - 1)) + " of rank " + std::to_string(next - 1 - first_block.begin());
}

void check_inside(const GridSpec& grid, const Box& box, const std::string& owner) {
  if (box.empty()) return;
  for (int d = 0; d < 3; ++d) {
    if (box.lo[d] >= 0 && box.hi[d] <= grid.cells[d]) continue;
    Index cell = box.lo;
    if (box.lo[d] >= 0) cell[d] = std::max(box.lo[d], grid.cells[d]);
    throw UsageError(owner + " owns cell " + cell_text(cell, grid.dims) + ", which is outside the grid of " +
                     cell_text(grid.cells, grid.dims) + " cells; pass global cells, counted from 0, without halos");
  }
}

void refuse_shared(int first, int second, const Index& cell, int dims, const std::vector<int>& first_block) {
  const int low = std::min(first, second), high = std::max(first, second);
  const std::string both = first_block.empty() ? "ranks " + std::to_string(low) + " and " + std::to_string(high)
                                               : owner_text(low, first_block) + " and " + owner_text(high, first_block);
  throw UsageError(both + " both own cell " + cell_text(cell, dims) + "; give each cell to one rank, without halos");
}

/// Refuses a `cut` that ends a block and lies within the block of `rank` in dimension d.
void refuse_cut(const GridSpec& grid, const std::vector<Box>& owned, int rank, int d, std::int64_t cut,
                const std::vector<int>& first_block) {
  const Box& box = owned[rank];
  for (int other = 0; other < static_cast<int>(owned.size()); ++other)
    if (const Box both = intersect(box, owned[other]); other != rank && !both.empty())
      refuse_shared(rank, other, both.lo, grid.dims, first_block);
  int cutting = 0;
  while (owned[cutting].empty() || (owned[cutting].lo[d] != cut && owned[cutting].hi[d] != cut)) ++cutting;
  const bool single = first_block.empty();
  throw UsageError((single ? "the block of " : "") + owner_text(rank, first_block) + ", from cell " +
                   cell_text(box.lo, grid.dims) + ", does not line up with " + (single ? "that of " : "") +
                   owner_text(cutting, first_block) + ", which ends or begins at " + name_of(d) + " = " +
                   std::to_string(cut) + "; let blocks share whole sides");
}

/// Returns the cells at which blocks begin and end in dimension d, from 0 to `cells`.
std::vector<std::int64_t> cuts_of(const std::vector<Box>& owned, int d, std::int64_t cells) {
  std::vector<std::int64_t> cuts{0, cells};
  for (const Box& box : owned) {
    if (box.empty()) continue;
    cuts.push_back(box.lo[d]);
    cuts.push_back(box.hi[d]);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

}  // namespace

Layout::Layout(const GridSpec& grid, const ProcessGrid& ranks, const RankOrder& order) : grid_(grid), ranks_(ranks) {
  check_grid(grid);
  check_ranks(grid, ranks, order);
  for (int d = 0; d < 3; ++d) {
    const std::int64_t base = grid.cells[d] / ranks[d], rest = grid.cells[d] % ranks[d];
    for (std::int64_t c = 0; c <= ranks[d]; ++c) cuts_[d].push_back(c * base + std::min(c, rest));
  }
  for (int d : order) {
    apart_[d] = size_;
    size_ *= ranks[d];
  }
  blocks_ = size_;
  find_smallest();
}

Layout::Layout(const GridSpec& grid, const std::vector<Box>& owned, bool holes) : Layout(grid, owned, holes, {}) {}

Layout::Layout(const GridSpec& grid, const std::vector<Box>& owned, bool holes, const std::vector<int>& first_block)
    : grid_(grid), size_(static_cast<int>(owned.size())) {
  check_grid(grid);
  if (owned.empty()) throw UsageError("a grid cannot be split over 0 ranks; use at least 1");
  if (std::all_of(owned.begin(), owned.end(), [](const Box& box) { return box.empty(); }))
    throw UsageError("no rank owns cells of the grid; give each cell to a rank");
  for (int rank = 0; rank < size_; ++rank) check_inside(grid, owned[rank], owner_text(rank, first_block));
  for (int d = 0; d < 3; ++d) {
    cuts_[d] = cuts_of(owned, d, grid.cells[d]);
    ranks_[d] = static_cast<int>(cuts_[d].size()) - 1;
  }
  settle(owned, first_block);
  has_holes_ = has_empty_places();
  if (has_holes_ && !holes) {
    std::int64_t hole = 0;
    while (hole < blocks_ && rank_of_[hole].first == hole) ++hole;
    throw UsageError("no rank owns cell " + cell_text(box_at(coords_of(hole)).lo, grid.dims) +
                     "; assign it to a rank, or declare that the grid has holes");
  }
  find_smallest();
}

/// Puts each rank into its place.
void Layout::settle(const std::vector<Box>& owned, const std::vector<int>& first_block) {
  for (int rank = 0; rank < size_; ++rank) {
    place_of_.push_back(-1);
    if (owned[rank].empty()) continue;
    const auto at = coords_at(owned[rank].lo);
    const Box whole = box_at(at);
    for (int d = 0; d < 3; ++d)
      if (whole.hi[d] != owned[rank].hi[d]) refuse_cut(grid_, owned, rank, d, whole.hi[d], first_block);
    place_of_.back() = place_at(at);
    rank_of_.emplace_back(place_of_.back(), rank);
  }
  blocks_ = static_cast<int>(rank_of_.size());
  std::sort(rank_of_.begin(), rank_of_.end());
  for (std::size_t i = 1; i < rank_of_.size(); ++i)
    if (const int rank = rank_of_[i].second; rank_of_[i - 1].first == rank_of_[i].first)
      refuse_shared(rank_of_[i - 1].second, rank, owned[rank].lo, grid_.dims, first_block);
}

Layout Layout::of_blocks(const GridSpec& grid, const std::vector<std::vector<Box>>& owned, bool holes) {
  std::vector<Box> blocks, of_rank;
  std::vector<int> first{0};
  for (const std::vector<Box>& own : owned) {
    of_rank.push_back(own.empty() ? Box{} : own.front());
    for (const Box& box : own) {
      if (box.empty() && own.size() > 1)
        throw UsageError(owner_text(static_cast<int>(blocks.size()), first) +
                         " has no cells; leave empty blocks out of several");
      if (!box.empty()) blocks.push_back(box);
    }
    first.push_back(static_cast<int>(blocks.size()));
  }
  if (std::all_of(owned.begin(), owned.end(), [](const auto& own) { return own.size() < 2; }))
    return Layout(grid, of_rank, holes);
  Layout by_block(grid, blocks, holes, first);
  Layout result = by_block;
  result.size_ = static_cast<int>(owned.size());
  result.place_of_.clear();
  result.rank_of_.clear();
  result.by_block_.push_back(std::move(by_block));
  result.first_block_ = std::move(first);
  return result;
}

int Layout::number_of_block(int rank, int block) const {
  const int blocks = blocks_of(rank);
  if (block < 0 || block >= blocks)
    throw UsageError("block " + std::to_string(block) + " does not exist; this rank has " + std::to_string(blocks));
  return first_block(rank) + block;
}

int Layout::rank_of_block(int block) const {
  if (!has_several_blocks()) return block;
  return static_cast<int>(std::upper_bound(first_block_.begin(), first_block_.end(), block) - first_block_.begin()) - 1;
}

void Layout::require_one_block() const {
  if (has_several_blocks())
    throw UsageError(
        "the grid has several blocks a rank, which exchanges and shares take, and this call does not; use a grid of "
        "one block a rank");
}

Layout Layout::renumbered(const std::vector<int>& from) const {
  require_one_block();
  std::vector<bool> named(static_cast<std::size_t>(size_));
  for (int rank : from)
    if (rank >= 0 && rank < size_) named[rank] = true;
  if (from.size() != named.size() || std::find(named.begin(), named.end(), false) != named.end())
    throw UsageError("new numbers for " + std::to_string(size_) + " ranks must name each of them once");
  Layout result = *this;
  result.place_of_.clear();
  result.rank_of_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    result.place_of_.push_back(owns_cells(from[rank]) ? place_at(coords(from[rank])) : -1);
    if (owns_cells(from[rank])) result.rank_of_.emplace_back(result.place_of_.back(), rank);
  }
  std::sort(result.rank_of_.begin(), result.rank_of_.end());
  return result;
}

Layout Layout::with_idle_ranks(int ranks) const {
  if (ranks < size_)
    throw UsageError("a grid split over " + std::to_string(size_) + " ranks does not fit a communicator of " +
                     std::to_string(ranks) + "; use at most its ranks");
  Layout result = *this;
  result.size_ = ranks;
  if (!place_of_.empty()) result.place_of_.resize(static_cast<std::size_t>(ranks), -1);
  if (has_several_blocks()) result.first_block_.resize(static_cast<std::size_t>(ranks) + 1, first_block_.back());
  return result;
}

void Layout::find_smallest() {
  smallest_ = grid_.cells;
  if (place_of_.empty()) {
    for (int d = 0; d < 3; ++d) smallest_[d] /= ranks_[d];
    return;
  }
  for (const auto& [place, rank] : rank_of_)
    for (int d = 0; d < 3; ++d) smallest_[d] = std::min(smallest_[d], local_cells(rank)[d]);
}

std::int64_t Layout::place_at(const std::array<int, 3>& c) const {
  return c[0] + ranks_[0] * (c[1] + std::int64_t{1} * ranks_[1] * c[2]);
}

std::array<int, 3> Layout::coords_of(std::int64_t place) const {
  const std::int64_t row = place / ranks_[0];
  return {static_cast<int>(place % ranks_[0]), static_cast<int>(row % ranks_[1]), static_cast<int>(row / ranks_[1])};
}

std::array<int, 3> Layout::coords_at(const Index& cell) const {
  std::array<int, 3> c{};
  for (int d = 0; d < 3; ++d)
    c[d] = static_cast<int>(std::upper_bound(cuts_[d].begin(), cuts_[d].end(), cell[d]) - cuts_[d].begin()) - 1;
  return c;
}

Box Layout::box_at(const std::array<int, 3>& c) const {
  Box box;
  for (int d = 0; d < 3; ++d) {
    box.lo[d] = cuts_[d][c[d]];
    box.hi[d] = cuts_[d][c[d] + 1];
  }
  return box;
}

void Layout::require_rank(int rank) const {
  if (rank < 0 || rank >= size_)
    throw UsageError("rank " + std::to_string(rank) + " is not one of the " + std::to_string(size_) +
                     " ranks; use 0 to " + std::to_string(size_ - 1));
}

std::array<int, 3> Layout::coords(int rank) const {
  require_one_block();
  if (!owns_cells(rank)) return {-1, -1, -1};
  if (!place_of_.empty()) return coords_of(place_of_[rank]);
  return {rank / apart_[0] % ranks_[0], rank / apart_[1] % ranks_[1], rank / apart_[2] % ranks_[2]};
}

int Layout::rank_at(const std::array<int, 3>& c) const {
  if (has_several_blocks()) {
    const int block = by_block().rank_at(c);
    return block < 0 ? -1 : rank_of_block(block);
  }
  if (place_of_.empty()) return c[0] * apart_[0] + c[1] * apart_[1] + c[2] * apart_[2];
  if (!has_empty_places()) return rank_of_[place_at(c)].second;
  const std::pair<std::int64_t, int> first{place_at(c), 0};
  const auto found = std::lower_bound(rank_of_.begin(), rank_of_.end(), first);
  return found != rank_of_.end() && found->first == first.first ? found->second : -1;
}

std::uint64_t Layout::number() const {
  std::uint64_t number = 0;
  const auto add = [&](std::int64_t part) {
    number = (number ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15U;
    number ^= number >> 29;
  };
  add(size_), add(static_cast<int>(grid_.fold));
  for (int d = 0; d < grid_.dims; ++d) {
    add(grid_.periodic[d] ? 1 : 2), add(apart_[d]);
    for (const std::int64_t cut : cuts_[d]) add(cut);
    for (const Box& panel : grid_.panels.boxes) add(panel.lo[d]), add(panel.hi[d]);
  }
  for (const Seam& seam : grid_.panels.seams)
    for (const PanelEdge& edge : {seam.first, seam.second}) add(edge.panel), add(edge.d), add(edge.side);
  for (const auto& [place, rank] : rank_of_) add(place), add(rank);
  for (const int first : first_block_) add(first);
  if (has_several_blocks()) add(static_cast<std::int64_t>(by_block().number()));
  return number;
}

Box Layout::owned(int rank) const {
  require_one_block();
  return owns_cells(rank) ? box_at(coords(rank)) : Box{};
}

Index Layout::local_cells(int rank) const {
  const Box box = owned(rank);
  return {box.extent(0), box.extent(1), box.extent(2)};
}

int Layout::neighbour(int rank, const std::array<int, 3>& offset) const {
  require_one_block();
  if (!owns_cells(rank)) return -1;
  auto c = coords(rank);
  const auto own = c;
  for (int d = 0; d < 3; ++d) {
    c[d] += offset[d];
    if (c[d] >= 0 && c[d] < ranks_[d]) continue;
    if (!grid_.periodic[d]) return -1;
    c[d] = (c[d] + ranks_[d]) % ranks_[d];
  }
  if (!grid_.panels.boxes.empty() && grid_.panel_at(box_at(c).lo) != grid_.panel_at(box_at(own).lo)) return -1;
  return rank_at(c);
}

bool Layout::has_neighbour(int rank, int d, int side) const {
  if (meets_itself(rank, d, side)) return true;
  std::array<int, 3> offset{};
  offset[d] = 2 * side - 1;
  if (!has_holes()) return neighbour(rank, offset) >= 0;
  const int e = (d + 1) % 3, f = (d + 2) % 3;
  for (offset[e] = -1; offset[e] <= 1; ++offset[e])
    for (offset[f] = -1; offset[f] <= 1; ++offset[f])
      if (neighbour(rank, offset) >= 0) return true;
  return has_neighbour_across_seams(rank, d, side);
}

/// Returns true if cells next to the corners at a side of a rank's cells lie beyond a seam, and belong to a rank.
bool Layout::has_neighbour_across_seams(int rank, int d, int side) const {
  if (grid_.panels.seams.empty() || !owns_cells(rank)) return false;
  Box strip = owned(rank);
  strip.lo[d] = side == 0 ? strip.lo[d] - 1 : strip.hi[d];
  strip.hi[d] = strip.lo[d] + 1;
  for (int e = 0; e < 3; ++e)
    if (e != d) strip = grown(strip, {e == 0, e == 1, e == 2}, {e == 0, e == 1, e == 2});
  const int panel = grid_.panel_at(owned(rank).lo);
  const std::vector<Crossing> ways = crossings_of(grid_.panels)[static_cast<std::size_t>(panel)];
  for (const Crossing& crossing : ways) {
    const Box beyond = beyond_panel(grid_.panel(panel), crossing, strip);
    if (!beyond.empty() && has_owner(crossed(crossing, Quantity{}, Quantity{}, beyond))) return true;
  }
  return false;
}

/// Returns true if some cell of a box, which may lie beyond periodic edges, belongs to a rank.
bool Layout::has_owner(const Box& box) const {
  Index cell;
  for (cell[2] = box.lo[2]; cell[2] < box.hi[2]; ++cell[2])
    for (cell[1] = box.lo[1]; cell[1] < box.hi[1]; ++cell[1])
      for (cell[0] = box.lo[0]; cell[0] < box.hi[0]; ++cell[0]) {
        Index inside = cell;
        for (int d = 0; d < 3; ++d)
          if (grid_.periodic[d]) inside[d] = (cell[d] % grid_.cells[d] + grid_.cells[d]) % grid_.cells[d];
        if (Box{{0, 0, 0}, grid_.cells}.contains(inside) && owner(inside) >= 0) return true;
      }
  return false;
}

Layout Layout::folded(Fold fold) const {
  Layout result = *this;
  result.grid_.fold = fold;
  check_dimensions(result.grid_);
  for (Layout& by_block : result.by_block_) by_block = by_block.folded(fold);
  return result;
}

Layout Layout::joined(const Panels& panels) const {
  Layout result = *this;
  result.grid_.panels = panels;
  check_dimensions(result.grid_);
  check_panels(result.grid_);
  for (Layout& by_block : result.by_block_) by_block = by_block.joined(panels);
  std::int64_t lacking = 0;
  for (const Box& panel : panels.boxes) lacking += panel.volume();
  for (int rank = 0; rank < size_ && !has_several_blocks(); ++rank) {
    if (!owns_cells(rank)) continue;
    const Box own = owned(rank);
    const int panel = result.grid_.panel_at(own.lo);
    if (panel < 0 || !result.grid_.panel(panel).contains(own))
      throw UsageError("the block that begins at cell " + cell_text(own.lo, dims()) +
                       (panel < 0 ? " lies in no panel" : " reaches beyond panel " + std::to_string(panel)) +
                       "; give each rank cells of one panel, or several blocks");
    lacking -= own.volume();
  }
  result.has_holes_ = has_several_blocks() ? result.by_block().has_holes() : lacking > 0;
  return result;
}

bool Layout::is_last(int rank, int d, int side) const {
  if (!owns_cells(rank)) return false;
  const Box own = owned(rank), panel = grid_.panel(grid_.panel_at(own.lo));
  return side == 0 ? own.lo[d] == panel.lo[d] : own.hi[d] == panel.hi[d];
}

bool Layout::is_at_edge(int rank, int d, int side) const {
  return !grid_.periodic[d] && is_last(rank, d, side) && !meets_itself(rank, d, side);
}

bool Layout::meets_itself(int rank, int d, int side) const {
  if (!grid_.meets_itself(d, side) || !is_last(rank, d, side)) return false;
  if (grid_.fold != Fold::none) return true;
  return find_seam(grid_.panels, {grid_.panel_at(owned(rank).lo), d, side}).has_value();
}

int Layout::owner(const Index& cell) const { return rank_at(coords_at(cell)); }

}  // namespace haloscope
