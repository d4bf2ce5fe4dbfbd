// The published grids of ranks, and the sizes of their blocks.
#include <gtest/gtest.h>

#include <set>

#include "haloscope/layout.hpp"
#include "tests/published.hpp"

namespace haloscope {
namespace {

Layout layout_of_cube(std::int64_t n, int ranks) {
  const GridSpec grid{3, {n, n, n}, {true, true, true}};
  return Layout(grid, process_grid("prime-factors", ranks, grid));
}

TEST(Decomposition, DA1_RowsOfTable42) {
  const auto rows = published("davis2017/data/decomposition.csv");
  ASSERT_EQ(rows.size(), 5u);
  for (const Row& row : rows) {
    const int ranks = number(row, "pes");
    const ProcessGrid expected{number(row, "px"), number(row, "py"), number(row, "pz")};
    const Layout layout = layout_of_cube(number(row, "global_cells_per_side"), ranks);
    if (ranks == 2048) {  // printed as 16x8x16, which the study's own rule and its table 5.8 contradict
      EXPECT_EQ(layout.ranks(), (ProcessGrid{8, 16, 16}));
      EXPECT_NE(layout.ranks(), expected);
      continue;
    }
    EXPECT_EQ(layout.ranks(), expected) << ranks;
    const std::string x = row.at("local_x");
    EXPECT_EQ(layout.local_cells(0)[0], std::stoi(x.substr(x.find('-') == std::string::npos ? 0 : x.find('-') + 1)));
    EXPECT_EQ(layout.local_cells(layout.size() - 1)[0], std::stoi(x));
    EXPECT_EQ(layout.local_cells(0)[1], number(row, "local_y"));
    EXPECT_EQ(layout.local_cells(0)[2], number(row, "local_z"));
  }
}

TEST(Decomposition, DA1_PowersOfTwoAreThoseOfTable58) {
  std::set<int> seen;
  for (const Row& row : published("davis2017/data/pair_counts.csv")) {
    const int ranks = number(row, "pes");
    const ProcessGrid expected{number(row, "px"), number(row, "py"), number(row, "pz")};
    EXPECT_EQ(layout_of_cube(400, ranks).ranks(), expected) << ranks;
    seen.insert(ranks);
  }
  EXPECT_EQ(seen, (std::set<int>{2, 4, 8, 16, 32, 64, 128, 256}));
}

}  // namespace
}  // namespace haloscope
