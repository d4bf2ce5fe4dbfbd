// Layouts and plans of several blocks a rank, for many ranks, without MPI: they move the same values as plans in which
// each block has a rank of its own.
#include <gtest/gtest.h>

#include <set>

#include "haloscope/error.hpp"
#include "simulated_plans.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using namespace test;

GridSpec random_grid(std::mt19937& random) {
  GridSpec grid;
  grid.dims = pick(random, 1, 3);
  for (int d = 0; d < grid.dims; ++d) {
    grid.cells[d] = pick(random, 4, 9);
    grid.periodic[d] = pick(random, 0, 1) != 0;
  }
  return grid;
}

ExchangeSpec random_spec(std::mt19937& random, const GridSpec& grid, bool holes) {
  ExchangeSpec spec = three_fields(random, grid);
  spec.motion = static_cast<Motion>(pick(random, 0, 2));
  spec.corners = !holes && pick(random, 0, 1) != 0;
  spec.pattern = static_cast<Pattern>(pick(random, 0, 1));
  spec.merge_peers = pick(random, 0, 1) != 0;
  spec.merge = static_cast<Merge>(pick(random, 0, 4));
  if (spec.motion != Motion::fill || pick(random, 0, 1) == 0) return spec;
  spec.beyond = true;
  for (Quantity& q : spec.quantities) q.edges = {};
  spec.widths[static_cast<std::size_t>(pick(random, 0, 2))].low[0] = 5;  // wider than some blocks
  return spec;
}

TEST(BlockPlan, MovesTheValuesOfPlansInWhichEachBlockHasARank) {
  std::mt19937 random(43);
  int tried = 0;
  for (int n = 0; n < 200; ++n) {
    const GridSpec grid = random_grid(random);
    const bool holes = pick(random, 0, 3) == 0;
    const Layout layout = random_deal(random, grid, pick(random, 1, 6), 20, holes);
    if (!layout.has_several_blocks()) continue;
    const ExchangeSpec spec = random_spec(random, grid, holes);
    SimulatedPlans joined(layout, spec), apart(layout.by_block(), spec);
    const auto for_points = [&](const auto& visit) {
      for (int block = 0; block < layout.by_block().size(); ++block)
        for (int q = 0; q < 3; ++q)
          each_point(apart.plan(block).allocated(q), [&](const Index& p) {
            const int rank = layout.rank_of_block(block);
            visit(joined.at(rank, (block - layout.first_block(rank)) * 3 + q, p), apart.at(block, q, p));
          });
    };
    std::uniform_real_distribution<double> any(-1, 1);
    for_points([&](double& one, double& other) { one = other = any(random); });
    joined.run();
    apart.run();
    for_points([&](double one, double other) { ASSERT_EQ(one, other) << "case " << n; });
    if (HasFailure()) return;
    ++tried;
  }
  EXPECT_GT(tried, 100);
}

TEST(BlockPlan, SendsOneMessageInADirectionToEachRankAndNoneToItself) {
  std::mt19937 random(44);
  for (int n = 0; n < 50; ++n) {
    const GridSpec grid = random_grid(random);
    const Layout layout = random_deal(random, grid, 3, 20, false);
    ExchangeSpec spec;
    spec.pattern = Pattern::direct;
    spec.merge_peers = true;
    for (int rank = 0; rank < 3; ++rank) {
      std::set<int> peers;
      for (const Message& message : make_plan(layout, rank, spec).messages) {
        EXPECT_NE(message.peer, rank);
        EXPECT_TRUE(!message.out || peers.insert(message.peer).second);
      }
    }
  }
}

TEST(BlockLayout, NamesTheBlockThatDoesNotFit) {
  const GridSpec grid{2, {8, 8, 1}, {}};
  const auto tile = [](std::int64_t x, std::int64_t y, std::int64_t n = 4) {
    return Box{{x, y, 0}, {x + n, y + 4, 1}};
  };
  const auto refused = [&](const std::vector<std::vector<Box>>& owned) {
    try {
      Layout::of_blocks(grid, owned);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_PART(refused({{tile(0, 0), tile(4, 0)}, {tile(0, 4), tile(4, 0)}}),
              "block 1 of rank 0 and block 1 of rank 1 both own cell (4, 0)");
  EXPECT_PART(refused({{tile(0, 0), tile(4, 0)}, {tile(0, 4)}}), "no rank owns cell (4, 4)");
  EXPECT_PART(refused({{tile(0, 0), tile(4, 0)}, {tile(0, 4), tile(8, 4)}}), "block 1 of rank 1 owns cell (8, 4)");
  EXPECT_PART(refused({{tile(0, 0), Box{}}, {}}), "block 1 of rank 0 has no cells");
  EXPECT_PART(refused({{tile(0, 0), tile(4, 0)}, {tile(0, 4, 8)}}),
              "block 0 of rank 1, from cell (0, 4), does not line");
}

TEST(BlockLayout, RefusesCallsThatNeedOneBlockARank) {
  const Layout layout = Layout::of_blocks(
      {1, {8, 1, 1}, {}}, {{{{0, 0, 0}, {3, 1, 1}}, {{3, 0, 0}, {5, 1, 1}}}, {}, {{{5, 0, 0}, {8, 1, 1}}}});
  EXPECT_TRUE(layout.has_several_blocks());
  EXPECT_EQ(layout.size(), 3);
  EXPECT_EQ(layout.blocks_of(0), 2);
  EXPECT_FALSE(layout.owns_cells(1));
  EXPECT_EQ(layout.owner({4, 0, 0}), 0);
  EXPECT_EQ(layout.owner({5, 0, 0}), 2);
  EXPECT_EQ(layout.by_block().local_cells(1), (Index{2, 1, 1}));
  EXPECT_THROW(layout.owned(1), UsageError);
  EXPECT_THROW(layout.coords(2), UsageError);
  EXPECT_THROW(layout.has_neighbour(1, 0, 0), UsageError);
  EXPECT_EQ(layout.with_idle_ranks(5).blocks_of(4), 0);
  // One block a rank at most is a layout of boxes.
  const std::vector<std::vector<Box>> single{{{{0, 0, 0}, {8, 1, 1}}}, {}};
  EXPECT_EQ(Layout::of_blocks({1, {8, 1, 1}, {}}, single), Layout({1, {8, 1, 1}, {}}, {single[0][0], Box{}}));
}

}  // namespace
}  // namespace haloscope
