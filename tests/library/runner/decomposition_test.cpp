// Grids from structures that a code already has: an order of ranks, a Cartesian communicator, boxes that ranks own.
#include <gtest/gtest.h>
#include <mpi.h>

#include <set>

#include "each_point.hpp"
#include "haloscope/haloscope.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

using namespace test;

/// A communicator of MPI_Cart_create over all ranks.
class Cartesian {
 public:
  Cartesian(std::vector<int> ranks, std::vector<int> periodic) : ranks_(std::move(ranks)) {
    MPI_Dims_create(world_size(), static_cast<int>(ranks_.size()), ranks_.data());
    MPI_Cart_create(MPI_COMM_WORLD, static_cast<int>(ranks_.size()), ranks_.data(), periodic.data(), 0, &comm_);
  }
  ~Cartesian() { MPI_Comm_free(&comm_); }
  Cartesian(const Cartesian&) = delete;
  Cartesian& operator=(const Cartesian&) = delete;
  operator MPI_Comm() const { return comm_; }
  const std::vector<int>& ranks() const { return ranks_; }
  /// The neighbouring rank, or -1.
  int beside(int dimension, int step) const {
    int source = 0, to = 0;
    MPI_Cart_shift(comm_, dimension, step, &source, &to);
    return to == MPI_PROC_NULL ? -1 : to;
  }

 private:
  std::vector<int> ranks_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Every halo cell holds the global number of its cell after an exchange, or its previous value where no rank owns
/// that.
template <int D>
void expect_right_halos(const Grid<D>& grid, const std::string& strategy, int width,
                        MemoryKind memory = MemoryKind::own) {
  Field<std::int64_t, D> u{grid, {.halo = width, .memory = memory}};
  auto halo = make_exchange(grid, {u}, strategy);
  const GridSpec& spec = grid.layout().grid();
  const Box own{{0, 0, 0}, grid.cells()};
  Widths layers{};
  for (int d = 0; d < D; ++d) layers[d] = width;
  const auto visit = [&](auto see) {
    if (own.empty()) return;
    each_point(grown(own, layers, layers), [&](const Index& p) {
      std::int64_t number = 0;
      Index global;
      for (int d = 2; d >= 0; --d) {
        global[d] = grid.owned().lo[d] + p[d];
        if (spec.periodic[d]) global[d] = (global[d] % spec.cells[d] + spec.cells[d]) % spec.cells[d];
        number = number * 1000 + global[d];
      }
      const bool inside = Box{{0, 0, 0}, spec.cells}.contains(global);
      if (!inside || grid.layout().owner(global) < 0) number = -1;
      if constexpr (D == 2)
        see(p, u[0](p[0], p[1]), number);
      else
        see(p, u[0](p[0], p[1], p[2]), number);
    });
  };
  visit([&](const Index& p, std::int64_t& at, std::int64_t number) { at = own.contains(p) ? number : -1; });
  halo.exchange();
  visit([&](const Index& p, std::int64_t at, std::int64_t number) {
    ASSERT_EQ(at, number) << strategy << ", cell " << p[0] << "," << p[1] << "," << p[2];
  });
}

TEST(Decomposition, ACartesianCommunicatorsLastDimensionIsFastest) {
  const Cartesian cart({0, 0}, {1, 0});
  const auto grid = Grid<2>::of_cartesian(cart, {12, 14});
  for (int d : {0, 1})
    for (int side : {0, 1}) {
      std::array<int, 3> offset{};
      offset[d] = 2 * side - 1;
      EXPECT_EQ(grid.layout().neighbour(grid.rank(), offset), cart.beside(d, 2 * side - 1));
    }
  EXPECT_TRUE(grid.layout().grid().periodic[0]);
  EXPECT_FALSE(grid.layout().grid().periodic[1]);
  expect_right_halos(grid, "ordered/p2p", 2);
}

TEST(Decomposition, AnyDimensionOfACartesianCommunicatorMayBeX) {
  const Cartesian cart({0, 0, 0}, {0, 1, 1});
  std::array<int, 3> axes{0, 1, 2};
  do {
    const auto grid = Grid<3>::of_cartesian(cart, {9, 10, 11}, axes);
    for (int d : {0, 1, 2}) {
      std::array<int, 3> offset{};
      offset[d] = 1;
      EXPECT_EQ(grid.layout().ranks()[d], cart.ranks()[axes[d]]);
      EXPECT_EQ(grid.layout().neighbour(grid.rank(), offset), cart.beside(axes[d], 1));
    }
    expect_right_halos(grid, "ordered/p2p", 1);
  } while (std::next_permutation(axes.begin(), axes.end()));
}

TEST(Decomposition, AGridThatContradictsItsCommunicatorIsRefused) {
  const Cartesian cart({0, 0}, {1, 1});
  const std::string process_grid = std::to_string(cart.ranks()[0]) + "x" + std::to_string(cart.ranks()[1]);
  const GridOptions<2> same{
      .cells = {12, 12}, .periodic = {true, true}, .process_grid = process_grid, .rank_order = {1, 0}};
  expect_right_halos(Grid<2>(cart, same), "direct/p2p", 1);
  GridOptions<2> other = same;
  other.periodic[1] = false;
  EXPECT_PART(error_of([&] { Grid<2>(cart, other); }), "of_cartesian");
  other = same;
  other.rank_order = {0, 1};
  const bool differs = cart.ranks()[0] > 1 && cart.ranks()[1] > 1;
  EXPECT_EQ(error_of([&] { Grid<2>(cart, other); }) != "no error", differs);
}

TEST(Decomposition, AxesThatDoNotNameTheCommunicatorsDimensionsAreRefused) {
  EXPECT_PART(error_of([] { Grid<2>::of_cartesian(MPI_COMM_WORLD, {8, 8}); }), "MPI_Cart_create");
  const Cartesian cart({0, 0}, {0, 0}), line({1, 1, 0}, {0, 0, 0});
  const auto refused = [](MPI_Comm comm, const std::array<int, 3>& axes, const std::string& part) {
    EXPECT_PART(error_of([&] { Grid<3>::of_cartesian(comm, {8, 8, 8}, axes); }), part);
  };
  refused(cart, {0, 1, 2}, "no dimension 2");
  refused(cart, {0, 1, 1}, "dimension 1 is named twice");
  refused(cart, {0, -2, 1}, "no dimension -2");
  if (world_size() > 1) {
    refused(cart, {not_split, 1, not_split}, "dimension 0 is not named");
    EXPECT_PART(error_of([&] { Grid<2>::of_cartesian(line, {8, 8}); }), "dimension 2 is not named");
  }
  expect_right_halos(Grid<2>::of_cartesian(line, {24, 8}, {2, 0}), "ordered/p2p", 1);  // dimension 1 has one process
}

TEST(Decomposition, ACommunicatorMaySplitAnyAxesOfAGridAndLeaveTheOthersWhole) {
  const Cartesian cart({0, 0}, {1, 0});
  std::array<int, 3> axes{not_split, 0, 1};
  std::sort(axes.begin(), axes.end());
  do {
    for (const bool wraps : {false, true}) {
      const auto grid = Grid<3>::of_cartesian(cart, {12, 14, 13}, axes, {}, {wraps, wraps, wraps});
      for (int d : {0, 1, 2}) {
        const bool whole = axes[d] == not_split;
        EXPECT_EQ(grid.layout().ranks()[d], whole ? 1 : cart.ranks()[axes[d]]);
        EXPECT_EQ(grid.layout().grid().periodic[d], whole ? wraps : axes[d] == 0);
        std::array<int, 3> offset{};
        offset[d] = 1;
        EXPECT_EQ(grid.layout().neighbour(grid.rank(), offset),
                  whole ? (wraps ? grid.rank() : -1) : cart.beside(axes[d], 1));
      }
      expect_right_halos(grid, "ordered/p2p", 2);
      expect_right_halos(grid, "direct/neighbor", 1);
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
}

TEST(Decomposition, ATopologyOfFewerDimensionsThatDoesNotProjectOnTheGridIsRefused) {
  const Cartesian plane({0, 0}, {1, 1});
  const std::string rows = std::to_string(plane.ranks()[0]), columns = std::to_string(plane.ranks()[1]);
  const auto grid_of = [&](const std::string& process_grid, std::array<int, 3> order, std::array<bool, 3> periodic) {
    return GridOptions<3>{
        .cells = {12, 12, 12}, .periodic = periodic, .process_grid = process_grid, .rank_order = order};
  };
  const std::string same = rows + "x1x" + columns;
  expect_right_halos(Grid<3>(plane, grid_of(same, {2, 0, 1}, {true, false, true})), "direct/p2p", 1);
  const auto error = [&](const GridOptions<3>& options) { return error_of([&] { Grid<3>(plane, options); }); };
  const bool differs = plane.ranks()[0] > 1 && plane.ranks()[1] > 1;
  EXPECT_EQ(has_part(error(grid_of(same, {0, 1, 2}, {true, true, true})), "axes="), differs);
  EXPECT_EQ(has_part(error(grid_of(same, {2, 0, 1}, {true, true, false})), "axes="), plane.ranks()[1] > 1);
  EXPECT_PART(error(grid_of("cubic", {2, 1, 0}, {true, true, true})), "axes=");  // by chance
  if (world_size() == 6) {
    EXPECT_PART(error(grid_of("6x1x1", {0, 1, 2}, {true, true, true})), "axes=");
  }
}

TEST(Decomposition, WhatIsNoCommunicatorOfOneGroupIsRefusedByName) {
  const GridOptions<2> options{.cells = {24, 24}};
  const auto refused = [&](MPI_Comm comm, const std::string& part) {
    const Box own{{0, 0, 0}, {24, 24, 1}};
    const Grid<2> good{MPI_COMM_SELF, options};
    Field<double, 2> u{good, {}};
    for (const std::string& error :
         {error_of([&] { Grid<2>(comm, options); }), error_of([&] {
            Grid<2>::of_cartesian(comm, {24, 24});
          }),
          error_of([&] {
            Grid<2>::of_boxes(comm, {24, 24}, {}, own);
          }),
          error_of([&] { doctor(comm); }), error_of([&] { Exchange(comm, good.layout(), {u}, "ordered/p2p"); })})
      EXPECT_PART(error, part);
  };
  refused(MPI_COMM_NULL, "MPI_COMM_NULL");
  if (world_size() == 1) return;
  const int rank = world_rank();
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
  refused(inter, "inter-communicator");
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

TEST(Decomposition, AGraphSaysNothingOfAGridUnlessEachRankSaysWhatItOwns) {
  const int rank = world_rank();
  const int size = world_size(), left = (rank + size - 1) % size, right = (rank + 1) % size;
  const std::array<int, 2> beside{left, right};
  std::vector<int> ends, edges;
  for (int r = 0; r < size; ++r) edges.push_back((r + 1) % size), ends.push_back(r + 1);
  MPI_Comm graph, adjacent;
  MPI_Graph_create(MPI_COMM_WORLD, size, ends.data(), edges.data(), 0, &graph);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, beside.data(), MPI_UNWEIGHTED, 2, beside.data(), MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &adjacent);
  for (MPI_Comm comm : {graph, adjacent}) {
    EXPECT_PART(error_of([&] { Grid<2>(comm, {.cells = {24, 24}}); }), "graph");
    EXPECT_PART(error_of([&] { Grid<2>::of_cartesian(comm, {24, 24}); }), "no Cartesian topology");
    const Box own{{4 * rank, 0, 0}, {4 * rank + 4, 4, 1}};
    expect_right_halos(Grid<2>::of_boxes(comm, {4 * size, 4}, {true, true}, own), "ordered/p2p", 1);
  }
  MPI_Comm_free(&graph);
  MPI_Comm_free(&adjacent);
}

/// A block of a process grid whose columns and rows are 2, 3, 4, ... cells wide.
Box uneven_box(int place, int columns) {
  const auto begin = [](std::int64_t n) { return n * (n + 3) / 2; };
  const int x = place % columns, y = place / columns;
  return {{begin(x), begin(y)}, {begin(x + 1), begin(y + 1)}};
}

TEST(Decomposition, EachRankMaySayWhatItOwns) {
  const int rank = world_rank();
  const int last = world_size() - 1;
  for (bool periodic : {false, true}) {
    const Index end = uneven_box(last, world_size()).hi;
    const Box own = uneven_box(last - rank, world_size());
    const auto grid = Grid<2>::of_boxes(MPI_COMM_WORLD, {end[0], end[1]}, {periodic, periodic}, own);
    EXPECT_EQ(grid.owned(), (Box{own.lo, {own.hi[0], own.hi[1], 1}}));
    for (const char* strategy : {"ordered/p2p", "direct/auto", "direct:merged/persistent"})
      expect_right_halos(grid, strategy, 2);
  }
}

TEST(Decomposition, HalosTowardsAHoleAreLeftAlone) {
  const int rank = world_rank();
  const int columns = 2, rows = (world_size() + 2) / 2;  // the last places, one or two, are land
  const Index end = uneven_box(columns * rows - 1, columns).hi;
  const auto grid = Grid<2>::of_boxes(MPI_COMM_WORLD, {end[0], end[1]}, {true, false}, uneven_box(rank, columns), true);
  EXPECT_TRUE(grid.layout().has_holes());
  expect_right_halos(grid, "direct/p2p", 2);
  Field<double, 2> u{grid, {}};
  EXPECT_PART(error_of([&] { make_exchange(grid, {u}, "ordered/p2p"); }), "hole");
  make_exchange(grid, {u}, "ordered/p2p", {.corners = false}).exchange();
  EXPECT_PART(error_of([&] { best(grid, u, "machine.json"); }), "without holes");
}

TEST(Decomposition, ARankWithoutNeighboursTakesPartInCollectiveRounds) {
  const int rank = world_rank();
  const int last = world_size() - 1;
  const std::int64_t first =
      4 * static_cast<std::int64_t>(rank) + (rank == last ? 4 : 0);  // a hole before the last rank's cells
  const auto grid =
      Grid<1>::of_boxes(MPI_COMM_WORLD, {4 * last + 8}, {false}, {{first, 0, 0}, {first + 4, 1, 1}}, true);
  for (const char* strategy : {"ordered/rma-fence", "ordered/p2p"}) {
    Field<double, 1> u{grid, {.halo = 1}};
    auto halo = make_exchange(grid, {u}, strategy, {.corners = false});
    for (std::int64_t i = -1; i <= 4; ++i) u[0](i) = i >= 0 && i < 4 ? static_cast<double>(first + i) : -1;
    halo.exchange();
    EXPECT_EQ(u[0](-1), rank == 0 || rank == last ? -1 : static_cast<double>(first - 1)) << strategy;
    EXPECT_EQ(u[0](4), rank >= last - 1 ? -1 : static_cast<double>(first + 4)) << strategy;
  }
}

TEST(Decomposition, BoxesThatDoNotTileAreRefusedOnAllRanksAlike) {
  const int rank = world_rank();
  const std::int64_t ranks = world_size();
  const auto refusal = [&](std::int64_t cells, std::int64_t lo, std::int64_t hi) {
    return error_of([&] { Grid<2>::of_boxes(MPI_COMM_WORLD, {cells, 4}, {true, true}, {{lo, 0, 0}, {hi, 4, 1}}); });
  };
  EXPECT_EQ(refusal(4 * ranks, 4 * rank, 4 * rank + 4), "no error");
  EXPECT_PART(refusal(4 * ranks + 1, 4 * rank, 4 * rank + 4),
              "no rank owns cell (" + std::to_string(4 * ranks) + ", 0)");
  if (ranks > 1) {
    EXPECT_PART(refusal(4 * ranks, 4 * rank, 4 * rank + 4 + (rank == 0)), "ranks 0 and 1 both own cell (4, 0)");
  }
}

TEST(WideHalos, ComeFromRanksBeyondTheNeighboursAndAroundThinDimensionsByEveryStrategy) {
  const int size = world_size();
  const Grid<2> thin{MPI_COMM_WORLD, {.cells = {2, 2 * size}, .periodic = {true, false}, .process_grid = "slabs"}};
  const Grid<3> thinner{
      MPI_COMM_WORLD,
      {.cells = {size, 1, 2}, .periodic = {true, true, true}, .process_grid = std::to_string(size) + "x1x1"}};
  int tried = 0;
  for (const std::string& name : strategy_names()) {
    const MemoryKind memory = needs_shared_fields(name) ? MemoryKind::shared : MemoryKind::own;
    tried += run_if_available([&] {
      SCOPED_TRACE(name);
      expect_right_halos(thin, name, 5, memory);
      expect_right_halos(thinner, name, 3, memory);
    });
  }
  EXPECT_GT(tried, 20);
}

TEST(WideHalos, ExcludeAccumulationsEdgesAndGhostRowsAndAllowThinnerParts) {
  const Grid<2> grid{MPI_COMM_WORLD,
                     {.cells = {2, 4 * world_size()}, .periodic = {true, true}, .process_grid = "slabs"}};
  Field<double, 2> u{grid, {.halo = 3}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  EXPECT_PART(error_of([&] { halo.accumulate(); }), "which excludes accumulations");
  halo.accumulate({.depth = 2});
  u[0](0, 0) = 4;
  halo.exchange({.low = {2, 0}, .high = {2, 0}, .ghost_rows = true});
  EXPECT_EQ(u[0](2, 0), 4);
  EXPECT_PART(error_of([&] {
                halo.exchange({.low = {3, 0}, .high = {3, 0}, .ghost_rows = true});
              }),
              "excludes ghost rows");
}

/// Ranks dealt to emulated nodes in turn.
std::vector<int> dealt(int nodes) {
  std::vector<int> node;
  for (int rank = 0; rank < world_size(); ++rank) node.push_back(rank % nodes);
  return node;
}

TEST(Reordering, RanksTakePlacesBesideThoseOfTheirNodeAndHalosAreRight) {
  for (int nodes : {1, 2, 3}) {
    GridOptions<2> options{.cells = {24, 18}, .periodic = {true, false}, .nodes = dealt(nodes)};
    const Grid<2> plain{MPI_COMM_WORLD, options};
    options.reorder = true;
    const Grid<2> grid{MPI_COMM_WORLD, options};
    const Sites sites{options.nodes, {}};
    const Crossings before = crossings(plain.layout(), sites), after = crossings(grid.layout(), sites);
    EXPECT_LE(after, before);
    const bool gains = nodes == 2 && (world_size() == 4 || world_size() >= 6);
    EXPECT_TRUE(after.nodes < before.nodes || !gains);
    const auto owned = blocks_of_all(MPI_COMM_WORLD, std::array{grid.owned()});
    for (int rank = 0; rank < world_size(); ++rank)
      EXPECT_EQ(std::vector{grid.layout().owned(rank)}, owned[rank]) << "of all alike";
    for (const char* strategy :
         {"ordered/p2p", "direct/neighbor", "direct:merged/shared:packed+p2p", "ordered/rma-fence", "direct/auto"})
      expect_right_halos(grid, strategy, 2);
  }
}

TEST(Reordering, RanksOfOneMachineKeepTheirOrderUnlessItsSocketsSayOtherwise) {
  const GridOptions<3> plain{.cells = {12, 12, 12}, .periodic = {true, true, true}};
  GridOptions<3> options = plain;
  options.reorder = true;
  const Grid<3> grid{MPI_COMM_WORLD, options};
  const Sites sites = sites_of(MPI_COMM_WORLD);
  ASSERT_EQ(sites.node.size(), static_cast<std::size_t>(world_size()));
  EXPECT_LE(crossings(grid.layout(), sites), crossings(Grid<3>(MPI_COMM_WORLD, plain).layout(), sites));
  expect_right_halos(grid, "ordered/p2p", 1);
}

TEST(Reordering, NodesOfAnotherNumberOfRanksAreRefusedOnAllRanks) {
  GridOptions<2> options{.cells = {24, 18}, .reorder = true, .nodes = dealt(2)};
  options.nodes.push_back(0);
  EXPECT_PART(error_of([&] { Grid<2>(MPI_COMM_WORLD, options); }), "nodes are given");
}

TEST(Reordering, ACartesianCommunicatorThatSaysOtherwiseIsRefused) {
  const Cartesian cart({0, 0}, {1, 1});
  const GridOptions<2> options{.cells = {24, 24},
                               .periodic = {true, true},
                               .process_grid = std::to_string(cart.ranks()[0]) + "x" + std::to_string(cart.ranks()[1]),
                               .rank_order = {1, 0},
                               .reorder = true,
                               .nodes = dealt(2)};
  const Layout plain({2, {24, 24, 1}, {true, true, false}}, {cart.ranks()[0], cart.ranks()[1], 1}, {1, 0, 2});
  const Sites sites{options.nodes, {}};
  const bool moved = crossings(reordered(plain, sites), sites) < crossings(plain, sites);
  EXPECT_EQ(error_of([&] { Grid<2>(cart, options); }) != "no error", moved);
}

TEST(IdleRanks, HaveNoArraysAndTakePartInEveryCall) {
  const int active = std::max(1, world_size() - 1);
  const Grid<2> grid{
      MPI_COMM_WORLD,
      {.cells = {6, 5 * active}, .periodic = {true, true}, .process_grid = "slabs", .active_ranks = active}};
  const bool idle = grid.rank() >= active;
  EXPECT_EQ(grid.owned().empty(), idle);
  std::vector<double> array(static_cast<std::size_t>(8 * (grid.cells()[1] + 2)), 1.0), other = array;
  const auto first = [&](std::vector<double>& of) { return idle ? nullptr : of.data() + 9; };
  for (const char* strategy : {"ordered/p2p", "direct/neighbor", "direct:merged/shared:packed", "auto", "reference",
                               "direct/rma-fence", "ordered/persistent"}) {
    const FieldRef u = view(grid, std::vector{first(array)}, 8, 0, 1);
    Exchange halo = make_exchange(grid, {u}, strategy, {.guard = true});
    halo.exchange();
    halo.accumulate();
    halo.share();
    std::vector<void*> moved{first(other)};
    halo.exchange_at(moved);
    halo.changed();
    halo.exchange();
    halo.check_clean();
    EXPECT_EQ(sum(grid, u) > 0, true) << strategy;
  }
}

TEST(IdleRanks, MayBeReordered) {
  GridOptions<2> options{.cells = {24, 18}, .periodic = {true, false}, .reorder = true, .nodes = dealt(2)};
  options.active_ranks = std::max(1, world_size() - 1);
  const Grid<2> grid{MPI_COMM_WORLD, options};
  EXPECT_EQ(grid.layout().blocks(), options.active_ranks);
  expect_right_halos(grid, "direct/p2p", 2);
}

}  // namespace
}  // namespace haloscope
