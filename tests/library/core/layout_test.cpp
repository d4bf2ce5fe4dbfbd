#include "haloscope/layout.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "haloscope/error.hpp"
#include "texts.hpp"

using namespace haloscope;

namespace {

using test::error_of;

GridSpec cube(std::int64_t n) { return {3, {n, n, n}, {true, true, true}}; }
GridSpec plane(std::int64_t x, std::int64_t y) { return {2, {x, y, 1}, {true, true, false}}; }

Layout split_by(const std::string& rule, int ranks, const GridSpec& grid) {
  return Layout(grid, process_grid(rule, ranks, grid));
}

/// Every cell belongs to one rank, no rank is empty, sizes differ by at most one cell per dimension.
void expect_even_partition(const Layout& layout) {
  std::int64_t cells = 0;
  for (int rank = 0; rank < layout.size(); ++rank) {
    const Index n = layout.local_cells(rank);
    for (int d = 0; d < 3; ++d) {
      ASSERT_GE(n[d], layout.smallest_extent(d));
      ASSERT_LE(n[d], layout.smallest_extent(d) + 1);
    }
    ASSERT_FALSE(layout.owned(rank).empty());
    cells += layout.owned(rank).volume();
  }
  const Index all = layout.grid().cells;
  ASSERT_EQ(cells, all[0] * all[1] * all[2]);
}

TEST(Decomposition, W8_BlocksAreAsNearToCubesAsPossible) {
  const std::map<int, Index> expected{
      {8, {210, 210, 210}}, {27, {140, 140, 140}}, {7, {420, 420, 60}}, {6, {420, 210, 140}}};
  for (const auto& [ranks, block] : expected) EXPECT_EQ(split_by("cubic", ranks, cube(420)).local_cells(0), block);
}

TEST(Decomposition, W8_NoBlockIsEmptyAndXIsLongestForEveryTaskCount) {
  for (int ranks = 1; ranks <= 420; ++ranks) {
    const Layout layout = split_by("cubic", ranks, cube(420));
    ASSERT_EQ(layout.size(), ranks);
    expect_even_partition(layout);
    ASSERT_LE(layout.ranks()[0], layout.ranks()[1]) << ranks;
    ASSERT_LE(layout.ranks()[1], layout.ranks()[2]) << ranks;
  }
}

TEST(Decomposition, V2_AnyOtherRankCountAndAnExplicitGridWork) {
  EXPECT_EQ(process_grid("square", 7, plane(100, 100)), (ProcessGrid{7, 1, 1}));
  EXPECT_EQ(process_grid("square", 18, plane(100, 100)), (ProcessGrid{6, 3, 1}));
  EXPECT_EQ(process_grid("square", 3, plane(1, 40)), (ProcessGrid{1, 3, 1}));  // the other way round where it fits
  EXPECT_EQ(process_grid("square", 6, plane(2, 40)), (ProcessGrid{2, 3, 1}));
  EXPECT_EQ(process_grid("square", 4, plane(40, 1)), (ProcessGrid{4, 1, 1}));
  EXPECT_EQ(process_grid("square", 7, plane(2, 3)), (ProcessGrid{7, 1, 1}));  // fits in no way
  EXPECT_EQ(process_grid("2x4", 8, plane(100, 100)), (ProcessGrid{2, 4, 1}));
  expect_even_partition(split_by("square", 7, plane(100, 30)));
}

TEST(Decomposition, RulesMayBeAskedAboutLargerGridsThanCanBe) {
  EXPECT_EQ(process_grid("cubic", 1000, cube(6'400'000)), (ProcessGrid{10, 10, 10}));
}

TEST(Decomposition, ASquareOfALineIsTheLine) {
  EXPECT_EQ(process_grid("square", 6, GridSpec{1, {50, 1, 1}, {}}), (ProcessGrid{6, 1, 1}));
}

TEST(Decomposition, SlabsAreBlocksOfWholeLinesOrPlanes) {
  EXPECT_EQ(process_grid("slabs", 6, GridSpec{1, {50, 1, 1}, {}}), (ProcessGrid{6, 1, 1}));
  EXPECT_EQ(process_grid("slabs", 6, plane(40, 50)), (ProcessGrid{1, 6, 1}));
  EXPECT_EQ(process_grid("slabs", 6, cube(50)), (ProcessGrid{1, 1, 6}));
}

TEST(Decomposition, V3_TheFirstRanksGetTheRemainder) {
  const Layout layout(plane(10, 4), {3, 1, 1});
  EXPECT_EQ(layout.owned(0), (Box{{0, 0, 0}, {4, 4, 1}}));
  EXPECT_EQ(layout.owned(1), (Box{{4, 0, 0}, {7, 4, 1}}));
  EXPECT_EQ(layout.owned(2), (Box{{7, 0, 0}, {10, 4, 1}}));
}

TEST(Decomposition, DA1_FiftyThreeCellsOnThreeRanks) {
  const Layout layout(cube(53), {1, 1, 3});
  EXPECT_EQ(layout.local_cells(0)[2], 18);
  EXPECT_EQ(layout.local_cells(1)[2], 18);
  EXPECT_EQ(layout.local_cells(2)[2], 17);
}

TEST(Decomposition, RankNumbersRunXFastest) {
  const Layout layout({3, {8, 9, 10}, {}}, {2, 3, 2});
  EXPECT_EQ(layout.coords(1), (std::array<int, 3>{1, 0, 0}));
  EXPECT_EQ(layout.coords(2), (std::array<int, 3>{0, 1, 0}));
  EXPECT_EQ(layout.coords(6), (std::array<int, 3>{0, 0, 1}));
  for (int rank = 0; rank < layout.size(); ++rank) EXPECT_EQ(layout.rank_at(layout.coords(rank)), rank);
}

TEST(Decomposition, EveryCellHasTheOwnerWhoseBoxHoldsIt) {
  const Layout layout({3, {7, 5, 11}, {}}, {3, 2, 4});
  for (int z = 0; z < 11; ++z)
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 7; ++x) ASSERT_TRUE(layout.owned(layout.owner({x, y, z})).contains(Index{x, y, z}));
}

TEST(Decomposition, RankNumbersRunAlongTheDimensionsInTheOrderGiven) {
  const Layout last_fastest({3, {8, 9, 10}, {}}, {2, 3, 2}, {2, 1, 0});
  EXPECT_EQ(last_fastest.coords(1), (std::array<int, 3>{0, 0, 1}));
  EXPECT_EQ(last_fastest.coords(2), (std::array<int, 3>{0, 1, 0}));
  EXPECT_EQ(last_fastest.coords(6), (std::array<int, 3>{1, 0, 0}));
  RankOrder order{0, 1, 2};
  do {
    const Layout layout(cube(53), {2, 3, 4}, order);
    expect_even_partition(layout);
    for (int rank = 0; rank < layout.size(); ++rank) ASSERT_EQ(layout.rank_at(layout.coords(rank)), rank);
  } while (std::next_permutation(order.begin(), order.end()));
}

/// The cells that each rank of a layout owns.
std::vector<Box> boxes_of(const Layout& layout) {
  std::vector<Box> boxes;
  for (int rank = 0; rank < layout.size(); ++rank) boxes.push_back(layout.owned(rank));
  return boxes;
}

/// Neighbours are the owners of the cells beyond a block's sides, edges and corners; boxes are the specified ones.
void expect_layout_of(const GridSpec& grid, const std::vector<Box>& boxes, bool holes) {
  const Layout layout(grid, boxes, holes);
  ASSERT_EQ(boxes_of(layout), boxes);
  const auto owner = [&](Index cell) {
    for (int d = 0; d < 3; ++d) {
      if (grid.periodic[d]) cell[d] = (cell[d] + grid.cells[d]) % grid.cells[d];
      if (cell[d] < 0 || cell[d] >= grid.cells[d]) return -1;
    }
    for (std::size_t rank = 0; rank < boxes.size(); ++rank)
      if (boxes[rank].contains(cell)) return static_cast<int>(rank);
    return -1;
  };
  for (int rank = 0; rank < layout.size(); ++rank)
    for (int way = 0; way < 27; ++way) {
      const std::array<int, 3> offset{way % 3 - 1, way / 3 % 3 - 1, way / 9 - 1};
      Index beyond = boxes[rank].lo;
      for (int d = 0; d < 3; ++d)
        beyond[d] = offset[d] < 0 ? boxes[rank].lo[d] - 1 : offset[d] > 0 ? boxes[rank].hi[d] : boxes[rank].lo[d];
      ASSERT_EQ(layout.neighbour(rank, offset), owner(beyond));
    }
  EXPECT_EQ(layout.owner(boxes.back().lo), static_cast<int>(boxes.size()) - 1);
}

TEST(Boxes, EvenBlocksOfBoxesAreThoseOfTheProcessGrid) {
  const Layout layout({3, {11, 10, 9}, {true, false, true}}, {2, 3, 2}, {1, 2, 0});
  expect_layout_of(layout.grid(), boxes_of(layout), false);
  for (int d : {0, 1, 2})
    EXPECT_EQ(Layout(layout.grid(), boxes_of(layout)).smallest_extent(d), layout.smallest_extent(d));
}

TEST(Boxes, UnevenBlocksOfRanksInAnyOrderHaveTheNeighboursThatTouchThem) {
  const GridSpec grid{2, {10, 7, 1}, {true, false, false}};
  expect_layout_of(
      grid, {{{1, 3, 0}, {10, 7, 1}}, {{0, 0, 0}, {1, 3, 1}}, {{0, 3, 0}, {1, 7, 1}}, {{1, 0, 0}, {10, 3, 1}}}, false);
}

TEST(Boxes, HolesHaveNoOwnerAndAreNoNeighbour) {
  const GridSpec grid{2, {6, 6, 1}, {true, false, false}};
  const std::vector<Box> ring{{{0, 0, 0}, {2, 2, 1}}, {{2, 0, 0}, {4, 2, 1}}, {{4, 0, 0}, {6, 2, 1}},
                              {{0, 2, 0}, {2, 4, 1}}, {{4, 2, 0}, {6, 4, 1}}, {{0, 4, 0}, {2, 6, 1}},
                              {{2, 4, 0}, {4, 6, 1}}, {{4, 4, 0}, {6, 6, 1}}};
  expect_layout_of(grid, ring, true);
  const Layout layout(grid, ring, true);
  EXPECT_TRUE(layout.has_holes());
  EXPECT_EQ(layout.owner({3, 2, 0}), -1);
  EXPECT_EQ(layout.rank_at({1, 1, 0}), -1);
  EXPECT_TRUE(layout.has_neighbour(1, 1, 1)) << "at its corners";
  expect_layout_of(grid, {ring[0], ring[7]}, true);
  EXPECT_EQ(Layout(grid, {ring[0], ring[7]}, true).ranks(), (ProcessGrid{3, 3, 1}));
}

TEST(Neighbours, V4_TwoByTwoHasOneNeighbourPerAxisAndOneDiagonal) {
  const Layout layout(plane(20, 20), {2, 2, 1});
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(layout.neighbour(rank, {1, 0, 0}), layout.neighbour(rank, {-1, 0, 0}));
    EXPECT_EQ(layout.neighbour(rank, {0, 1, 0}), layout.neighbour(rank, {0, -1, 0}));
    std::set<int> corners;
    for (int x : {-1, 1})
      for (int y : {-1, 1}) corners.insert(layout.neighbour(rank, {x, y, 0}));
    EXPECT_EQ(corners, std::set<int>{3 - rank});
  }
}

TEST(Neighbours, V4_ThreeByThreeHasEightDifferentNeighbours) {
  const Layout layout(plane(20, 20), {3, 3, 1});
  for (int rank = 0; rank < 9; ++rank) {
    std::set<int> around;
    for (int x : {-1, 0, 1})
      for (int y : {-1, 0, 1})
        if (x != 0 || y != 0) around.insert(layout.neighbour(rank, {x, y, 0}));
    EXPECT_EQ(around.size(), 8u);
    EXPECT_FALSE(around.contains(rank));
  }
}

TEST(Neighbours, EdgesThatAreNotPeriodicHaveNone) {
  const Layout layout({2, {8, 8, 1}, {true, false, false}}, {2, 2, 1});
  EXPECT_EQ(layout.neighbour(0, {-1, 0, 0}), 1);
  EXPECT_EQ(layout.neighbour(0, {0, -1, 0}), -1);
  EXPECT_EQ(layout.neighbour(0, {1, -1, 0}), -1);
  EXPECT_EQ(layout.neighbour(0, {1, 1, 0}), 3);
}

TEST(Neighbours, ARankAloneInAPeriodicDimensionIsItsOwn) {
  const Layout layout({1, {8, 1, 1}, {true, false, false}}, {1, 1, 1});
  EXPECT_EQ(layout.neighbour(0, {1, 0, 0}), 0);
  EXPECT_EQ(layout.neighbour(0, {-1, 0, 0}), 0);
}

/// Expects that a rank owns no cells.
void expect_idle(const Layout& layout, int rank) {
  EXPECT_FALSE(layout.owns_cells(rank));
  EXPECT_TRUE(layout.owned(rank).empty());
  EXPECT_EQ(layout.local_cells(rank), (Index{0, 0, 0}));
  EXPECT_EQ(layout.coords(rank), (std::array{-1, -1, -1}));
  EXPECT_EQ(layout.neighbour(rank, {0, 0, 0}), -1);
  EXPECT_FALSE(layout.has_neighbour(rank, 0, 1));
}

TEST(IdleRanks, OwnNoCellsAndHaveNoNeighbours) {
  const GridSpec grid{2, {8, 6, 1}, {true, false, false}};
  const Box left{{0, 0, 0}, {4, 6, 1}}, right{{4, 0, 0}, {8, 6, 1}};
  const Layout boxes(grid, {right, {}, left}), even = Layout(grid, {2, 1, 1}).with_idle_ranks(5);
  EXPECT_EQ(boxes.size(), 3);
  EXPECT_EQ(even.size(), 5);
  EXPECT_EQ(boxes.blocks(), 2);
  EXPECT_EQ(even.blocks(), 2);
  EXPECT_FALSE(boxes.has_holes() || even.has_holes());
  expect_idle(boxes, 1);
  for (const int rank : {2, 3, 4}) expect_idle(even, rank);
  EXPECT_EQ(boxes.neighbour(0, {1, 0, 0}), 2);
  EXPECT_EQ(even.neighbour(0, {-1, 0, 0}), 1);
  EXPECT_EQ(boxes.smallest_extent(0), 4);
  expect_idle(boxes.renumbered({1, 2, 0}), 0);
  EXPECT_EQ(boxes.renumbered({1, 2, 0}).owned(1), left);
  expect_idle(boxes.with_idle_ranks(4), 3);
}

TEST(IdleRanks, AreNotMoreThanTheRanksOfTheCommunicator) {
  EXPECT_PART(error_of([] { Layout(plane(8, 6), {2, 1, 1}).with_idle_ranks(1); }), "2 ranks does not fit");
  EXPECT_EQ(active_ranks(0, 4, "cubic", plane(8, 6)), 4);
  for (const int ranks : {3, 4}) EXPECT_EQ(active_ranks(ranks, 4, "cubic", plane(8, 6)), ranks);
  for (const int ranks : {-1, 5})
    EXPECT_PART(error_of([&] { active_ranks(ranks, 4, "cubic", plane(8, 6)); }), "active_ranks is");
}

TEST(IdleRanks, AreThoseThatARuleCannotPlaceOnTheCells) {
  EXPECT_EQ(active_ranks(0, 4, "cubic", {1, {3, 1, 1}}), 3);
  EXPECT_EQ(active_ranks(0, 7, "cubic", plane(3, 3)), 6);
  EXPECT_EQ(active_ranks(0, 5, "slabs", plane(100, 2)), 5);  // which Layout refuses: another rule places them
  EXPECT_EQ(active_ranks(0, 3, "square", plane(1, 1000)), 3);
  EXPECT_EQ(active_ranks(0, 7, "slabs", plane(2, 3)), 3);
  EXPECT_EQ(active_ranks(0, 1000000, "cubic", plane(2, 2)), 4);
  EXPECT_EQ(active_ranks(0, 5, "5x1", plane(3, 3)), 5);  // which Layout refuses
}

TEST(LayoutNumber, DiffersWhereLayoutsDo) {
  const GridSpec grid = plane(8, 6);
  const auto all = [&] {
    const Layout two(grid, {2, 1, 1});
    return std::vector{two,
                       Layout(grid, {1, 2, 1}),
                       Layout(plane(6, 8), {2, 1, 1}),
                       Layout({2, {8, 6, 1}, {true, false, false}}, {2, 1, 1}),
                       Layout(grid, std::vector{Box{{0, 0, 0}, {3, 6, 1}}, Box{{3, 0, 0}, {8, 6, 1}}}),
                       two.with_idle_ranks(3),
                       two.renumbered({1, 0})};
  };
  std::set<std::uint64_t> numbers;
  for (const Layout& layout : all()) numbers.insert(layout.number());
  EXPECT_EQ(numbers.size(), all().size());
  for (const Layout& again : all()) EXPECT_TRUE(numbers.contains(again.number()));
}

TEST(BadInput, ImpossibleGridsAreRefusedWithTheReason) {
  EXPECT_PART(error_of([] { Layout(plane(0, 4), {1, 1, 1}); }), "0 cells in x");
  EXPECT_PART(error_of([] { Layout(plane(4, -2), {1, 1, 1}); }), "-2 cells in y");
  EXPECT_PART(error_of([] { Layout(plane(4, 4), {5, 1, 1}); }), "5 ranks on 4 cells in x");
  EXPECT_PART(error_of([] { Layout(plane(4, 4), {2, 0, 1}); }), "0 ranks");
  EXPECT_PART(error_of([] { Layout(GridSpec{4, {4, 4, 4}, {}}, {1, 1, 1}); }), "1 to 3");
  EXPECT_PART(error_of([] { Layout(GridSpec{2, {4, 4, 4}, {}}, {1, 1, 1}); }), "2D");
}

TEST(BadInput, BoxesThatAreNoSplitOfTheGridAreRefusedWithTheCell) {
  const GridSpec grid = plane(8, 6);
  const auto refusal = [&](std::vector<Box> boxes) { return error_of([&] { Layout(grid, boxes); }); };
  const Box left{{0, 0, 0}, {4, 6, 1}}, right{{4, 0, 0}, {8, 6, 1}};
  EXPECT_EQ(refusal({left, {{3, 0, 0}, {8, 6, 1}}}),
            "ranks 0 and 1 both own cell (3, 0); give each cell to one rank, without halos");
  EXPECT_EQ(refusal({left, right, right}),
            "ranks 1 and 2 both own cell (4, 0); give each cell to one rank, without halos");
  EXPECT_EQ(refusal({left, {{5, 0, 0}, {8, 6, 1}}}),
            "no rank owns cell (4, 0); assign it to a rank, or declare that the grid has holes");
  EXPECT_PART(refusal({left, {{4, 0, 0}, {9, 6, 1}}}),
              "rank 1 owns cell (8, 0), which is outside the grid of (8, 6) cells");
  constexpr std::int64_t far = std::int64_t{1} << 32;  // the number of its cells fits no integer
  EXPECT_PART(refusal({left, {{4, 0, 0}, {4 + far, far, 1}}}), "rank 1 owns cell (8, 0)");
  EXPECT_PART(refusal({{{-1, 0, 0}, {4, 6, 1}}, right}), "rank 0 owns cell (-1, 0)");
  EXPECT_PART(refusal({left, {{4, 0, 0}, {4, 6, 1}}}), "no rank owns cell (4, 0)");
  EXPECT_PART(refusal({{}, {}}), "no rank owns cells of the grid");
  EXPECT_PART(refusal({}), "at least 1");
  EXPECT_PART(refusal({left, {{4, 0, 0}, {8, 3, 1}}, {{4, 3, 0}, {8, 6, 1}}}),
              "the block of rank 0, from cell (0, 0), does not line up with that of rank 1, which ends or begins "
              "at y = 3");
}

TEST(BadInput, AnOrderOfRanksNamesEachDimensionOnce) {
  EXPECT_PART(error_of([] { Layout(cube(8), {2, 1, 1}, {0, 0, 1}); }), "once each");
}

TEST(BadInput, ProcessGridsThatCannotBeAreRefusedWithTheRemedy) {
  EXPECT_PART(error_of([] { process_grid("cubci", 4, cube(8)); }), "did you mean cubic");
  EXPECT_PART(error_of([] { process_grid("2x3x1", 8, cube(8)); }), "product is the rank count");
  EXPECT_PART(error_of([] { process_grid("2x4", 8, cube(8)); }), "3 factors");
  for (const int ranks : {0, -3, std::numeric_limits<int>::max()})
    EXPECT_PART(error_of([&] { process_grid("cubic", ranks, cube(8)); }), "use 1 to 10000000");
  for (const int dims : {-1, 0, 4, 20, 100'000'000})
    for (const std::string& rule : process_grid_rules())
      EXPECT_PART(error_of([&] { process_grid(rule, 4, {dims, {8, 8, 8}}); }), "1 to 3 dimensions");
  EXPECT_PART(error_of([] { process_grid("square", 4, cube(8)); }), "2D");
  EXPECT_PART(error_of([] { split_by("cubic", 1000, plane(4, 4)); }), "fewer ranks");
  for (const char* text : {"x", "2x", "x4", "2xx4", "99999999999x2", "0x0", "2x4x1"})
    EXPECT_PART(error_of([&] { process_grid(text, 8, plane(8, 8)); }), "2 factors of 8 ranks") << text;
}

}  // namespace
