#include "haloscope/layout.hpp"

#include <cmath>
#include <limits>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

std::string to_text(const ProcessGrid& p, int dims) {
  std::string text = std::to_string(p[0]);
  for (int d = 1; d < dims; ++d) text += "x" + std::to_string(p[d]);
  return text;
}

/// Blocks as near to cubes as possible: least block surface over all factorisations; equal ones resolved towards few
/// ranks in x, then y (White & Dongarra 2011, IV-B).
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
  if (std::isinf(best_surface)) best[grid.dims - 1] = ranks;  // more ranks than cells: Layout says so
  return best;
}

/// The process grid itself as near to a square as possible, height <= length. Table 3.2 of Valen 2023 has that pair for
/// each of its nine rank counts, so one rule serves all.
ProcessGrid square(int ranks, const GridSpec& grid) {
  if (grid.dims == 1) return {ranks, 1, 1};
  if (grid.dims != 2)
    throw UsageError("process grid rule 'square' is for 2D grids; use cubic, prime-factors, slabs or explicit PxQxR");
  int height = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % height != 0) --height;
  return {ranks / height, height, 1};
}

/// Prime factors, largest first, each to the dimension with most cells left (ties z, y, x); dimensions of equal
/// global extent are then sorted so that z has most ranks. Every row of table 4.2 but 2048 ranks and every row of
/// table 5.8 obeys it (Davis 2017, section 4.2.2).
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

/// Blocks of whole lines (planes in 3D): all ranks in the slowest dimension (Schroeter 2021, section 4.2).
ProcessGrid slabs(int ranks, const GridSpec& grid) {
  ProcessGrid p{1, 1, 1};
  p[grid.dims - 1] = ranks;
  return p;
}

ProcessGrid explicit_grid(const std::string& text, int ranks, const GridSpec& grid) {
  ProcessGrid p{1, 1, 1};
  const auto words = split(text, 'x');
  std::int64_t product = 1;
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

struct Rule {
  const char* name;
  const char* author;  // the same rule under the name of the study that used it
  ProcessGrid (*split)(int ranks, const GridSpec& grid);
};

constexpr Rule rules[] = {{"cubic", "white", cubic},
                          {"square", "valen", square},
                          {"prime-factors", "davis", prime_factors},
                          {"slabs", "lines", slabs}};

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
  if (ranks < 1) throw UsageError("a grid cannot be split over " + std::to_string(ranks) + " ranks; use at least 1");
  if (!rule.empty() && rule.find_first_not_of("0123456789x") == std::string::npos)
    return explicit_grid(rule, ranks, grid);
  for (const Rule& one : rules)
    if (rule == one.name || rule == one.author) return one.split(ranks, grid);
  throw UsageError(unknown_name("process grid rule", rule, process_grid_rules()));
}

Layout::Layout(const GridSpec& grid, const ProcessGrid& ranks) : grid_(grid), ranks_(ranks) {
  if (grid.dims < 1 || grid.dims > 3)
    throw UsageError("a grid has 1 to 3 dimensions, not " + std::to_string(grid.dims));
  for (int d = 0; d < 3; ++d) {
    const std::string dimension(1, "xyz"[d]);
    if (grid.cells[d] < 1)
      throw UsageError("the grid has " + std::to_string(grid.cells[d]) + " cells in " + dimension +
                       "; every dimension needs at least 1");
    if (d >= grid.dims && (grid.cells[d] != 1 || ranks[d] != 1))
      throw UsageError("a " + std::to_string(grid.dims) + "D grid cannot have cells or ranks in " + dimension);
    if (ranks[d] < 1 || ranks[d] > grid.cells[d])
      throw UsageError("process grid " + to_text(ranks, grid.dims) + " puts " + std::to_string(ranks[d]) +
                       " ranks on " + std::to_string(grid.cells[d]) + " cells in " + dimension +
                       "; use fewer ranks, more cells, or another process grid");
  }
}

std::array<int, 3> Layout::coords(int rank) const {
  return {rank % ranks_[0], rank / ranks_[0] % ranks_[1], rank / ranks_[0] / ranks_[1]};
}

int Layout::rank_at(const std::array<int, 3>& c) const { return c[0] + ranks_[0] * (c[1] + ranks_[1] * c[2]); }

Box Layout::owned(int rank) const {
  const auto c = coords(rank);
  Box box;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t base = grid_.cells[d] / ranks_[d], rest = grid_.cells[d] % ranks_[d];
    box.lo[d] = c[d] * base + std::min<std::int64_t>(c[d], rest);
    box.hi[d] = box.lo[d] + base + (c[d] < rest);
  }
  return box;
}

Index Layout::local_cells(int rank) const {
  const Box box = owned(rank);
  return {box.extent(0), box.extent(1), box.extent(2)};
}

int Layout::neighbour(int rank, const std::array<int, 3>& offset) const {
  auto c = coords(rank);
  for (int d = 0; d < 3; ++d) {
    c[d] += offset[d];
    if (c[d] >= 0 && c[d] < ranks_[d]) continue;
    if (!grid_.periodic[d]) return -1;
    c[d] = (c[d] + ranks_[d]) % ranks_[d];
  }
  return rank_at(c);
}

int Layout::owner(const Index& cell) const {
  std::array<int, 3> c{};
  for (int d = 0; d < 3; ++d) {
    const std::int64_t base = grid_.cells[d] / ranks_[d], rest = grid_.cells[d] % ranks_[d];
    const std::int64_t wide = rest * (base + 1);
    c[d] = static_cast<int>(cell[d] < wide ? cell[d] / (base + 1) : rest + (cell[d] - wide) / base);
  }
  return rank_at(c);
}

}  // namespace haloscope
