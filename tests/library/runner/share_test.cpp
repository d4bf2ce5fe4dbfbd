// share() gives all holders of nodes and faces the owner's values, by every strategy.
#include <gtest/gtest.h>
#include <mpi.h>

#include <optional>

#include "allocation_counter.hpp"
#include "haloscope/haloscope.hpp"
#include "opened_case.hpp"
#include "tori.hpp"

namespace haloscope {
namespace {

using namespace test;

/// Fields of any centring.
Case random_nodes_case(std::mt19937& random) {
  Case c = random_numbers_case(random);
  for (Quantity& q : c.spec.quantities) q.centring = static_cast<Centring>(pick(random, 0, 1 + c.grid.dims));
  return c;
}

TEST(Share, GivesAllHoldersTheValueOfTheOwnerByEveryStrategy) {
  std::mt19937 random(24);
  std::mt19937_64 values(static_cast<unsigned>(25 + world_rank()));
  std::size_t tried = 0;
  for (int n = 0; n < (thorough() ? 12 : 2); ++n) {
    const Case c = random_nodes_case(random);
    for (const Strategy& strategy : strategies_for(c)) {
      SCOPED_TRACE(to_string(strategy) + " " + describe(c));
      std::optional<OpenedCase> opened = open(c, strategy);
      if (!opened) continue;
      ++tried;
      const HeldPoints held(*opened, true);
      for (int turn = 0; turn < 2; ++turn) {
        const int slot = turn % c.slots;
        opened->visit(slot, [&](int, const Quantity& q, std::byte* at) { set_fractions(q, at, values); });
        const std::vector<std::byte> expected = held.alike(opened->contents(slot));
        MPI_Barrier(MPI_COMM_WORLD);  // neighbours may write into shared fields from here on
        opened->halo->share(slot);
        ASSERT_EQ(opened->contents(slot), expected);
        MPI_Barrier(MPI_COMM_WORLD);
      }
      EXPECT_TRUE(opened->fields.canaries_alive());
    }
  }
  EXPECT_GT(tried, 20u);
}

/// A grid whose rank numbers rise with x and y, so that owners and values are plain.
TEST(Share, TakesTheValueOfTheRankWhoseCellBeginsAtTheNode) {
  const Grid<1> grid(MPI_COMM_WORLD, {.cells = {4 * world_size()}, .periodic = {true}});
  const std::int64_t n = grid.cells()[0];
  Field<int, 1> u(grid, {.halo = 1, .centring = Centring::node}), v(grid, {.halo = 1, .centring = Centring::node});
  auto halo = make_exchange(grid, {u, v}, "ordered/p2p");
  for (std::int64_t i = -1; i <= n + 1; ++i) u[0](i) = v[0](i) = i == 0 ? 100 + grid.rank() : -1;
  halo.share({.only = {1}});
  for (std::int64_t i = -1; i <= n + 1; ++i) {
    const int end = 100 + (grid.rank() + 1) % world_size();
    EXPECT_EQ(v[0](i), i == 0 ? 100 + grid.rank() : i == n ? end : -1) << i;
    EXPECT_EQ(u[0](i), i == 0 ? 100 + grid.rank() : -1) << i;
  }
}

TEST(Share, MayBeStartedAndProgressedAndAllocatesNothingLater) {
  const auto grid = torus();
  Field<double, 2> u(grid, {.halo = 1, .centring = Centring::node});
  for (const char* strategy : {"ordered/p2p", "direct:merged/persistent", "ordered/shared:packed"}) {
    auto halo = make_exchange(grid, {u}, strategy);
    halo.share();
    const std::int64_t before = allocations();
    for (int turn = 0; turn < 3; ++turn) {
      halo.start_share();
      while (!halo.progress()) {
      }
    }
    EXPECT_EQ(allocations(), before) << strategy;
  }
}

TEST(Share, OfNodesWithoutHalosIsRightOnceAutoHasChosen) {
  const auto grid = torus();
  Field<int, 2> u(grid, {.halo = 0, .centring = Centring::node});
  auto halo = make_exchange(grid, {u}, "direct/auto:quick");
  for (int turn = 0; turn < 500; ++turn) {
    u[0](0, 0) = 1000 * turn + grid.rank();
    turn % 2 == 0 ? halo.share() : halo.accumulate();
    ASSERT_TRUE(turn % 2 != 0 || u[0](grid.cells()[0], 0) % 1000 == grid.layout().neighbour(grid.rank(), {1, 0, 0}));
  }
  if (world_size() > 1) {
    EXPECT_PART(halo.report(), "share: auto: chose");
    EXPECT_PART(halo.report(), "accumulation: auto: chose");
  }
}

TEST(Share, IsNamedInTheReportOfAuto) {
  const auto grid = torus();
  Field<double, 2> u(grid, {.halo = 1, .name = "u", .centring = Centring::node}), v(grid, {.halo = 1, .name = "v"});
  auto halo = make_exchange(grid, {u, v});
  halo.share({.only = {1}});
  EXPECT_PART(halo.report(), "; share of v: auto");
  halo.share();
  EXPECT_PART(halo.report(), "; share: auto");
}

TEST(Share, OfLayersIsRefusedOnAllRanks) {
  const auto grid = torus();
  Field<double, 2> u(grid, {.halo = 1, .centring = Centring::node});
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  EXPECT_PART(error_of([&] { halo.share({.depth = 1}); }), "names layers; pass fields only");
  EXPECT_PART(error_of([&] { halo.share({.only = {1}}); }), "field 1 of a part does not exist");
  halo.start_share();
  EXPECT_PART(error_of([&] { halo.start(); }), "the share of slot 0");
  halo.finish();
  EXPECT_PART(error_of([&] { halo.share(1); }), "slot 1");
}

}  // namespace
}  // namespace haloscope
