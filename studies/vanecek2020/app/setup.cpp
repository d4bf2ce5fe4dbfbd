#include "vanecek2020/app/setup.hpp"

#include <algorithm>
#include <array>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Returns the elements of table 4.1: three series of nine blocks, 15 000 elements from one to the next.
std::int64_t elements_of_table(int block) {
  constexpr std::array<std::int64_t, 3> first{0, 5000, 10000};
  return std::max<std::int64_t>(first[static_cast<std::size_t>(block / 9)] + 15000 * (block % 9), 1);
}

struct Row {
  const char* name;
  int grid[3];
  int threads;
  double scale;  // of the table
};
constexpr std::array<Row, 5> rows{{{"XS", {4, 1, 1}, 16, 1e-3},
                                   {"S", {4, 1, 1}, 16, 1},
                                   {"M", {3, 3, 1}, 128, 1},
                                   {"L", {3, 3, 3}, 128, 1},
                                   {"XL", {3, 3, 3}, 128, 10}}};

int next(int side, int by, int sides) { return (side + by + sides) % sides; }

int partner(int side, int sides) {
  const int other = side ^ 1;
  return other < sides ? other : side;
}

int moved(Scheme scheme, int side, int sides, int block, int direction) {
  if (scheme == Scheme::pairs || (scheme == Scheme::mixed && block == 0)) return partner(side, sides);
  return next(side, scheme == Scheme::ring || block == 1 ? direction : -direction, sides);
}

}  // namespace

Workload find_workload(const std::string& name) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    names.emplace_back(row.name);
    if (name != row.name) continue;
    Workload found{name, {row.grid[0], row.grid[1], row.grid[2]}, row.threads, {}};
    for (int b = 0; b < row.grid[0] * row.grid[1] * row.grid[2]; ++b)
      found.elements.push_back(
          std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(elements_of_table(b)) * row.scale), 1));
    return found;
  }
  throw UsageError(unknown_name("workload", name, names));
}

int destination_of(Scheme scheme, int side, int sides, int block) { return moved(scheme, side, sides, block, 1); }
int source_of(Scheme scheme, int side, int sides, int block) { return moved(scheme, side, sides, block, -1); }

}  // namespace haloscope
