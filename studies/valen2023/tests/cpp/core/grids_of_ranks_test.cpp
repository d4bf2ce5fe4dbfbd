// The published grids of ranks.
#include <gtest/gtest.h>

#include "haloscope/layout.hpp"
#include "tests/published.hpp"

namespace haloscope {
namespace {

TEST(Decomposition, V2_RankGridsAreThoseOfTable32) {
  const auto rows = published("valen2023/data/decomposition.csv");
  const GridSpec grid{2, {100, 100, 1}, {true, true, false}};
  ASSERT_EQ(rows.size(), 9u);
  for (const Row& row : rows) {
    const ProcessGrid expected{number(row, "ranks_in_length"), number(row, "ranks_in_height"), 1};
    EXPECT_EQ(process_grid("square", number(row, "ranks"), grid), expected) << row.at("ranks");
  }
}

}  // namespace
}  // namespace haloscope
