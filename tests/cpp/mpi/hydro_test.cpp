// hydro3d: the same bits whatever the ranks, forms, schedules and transports; walls that nothing passes.
#include <vector>

#include "haloscope/apps/hydro3d/clock.hpp"
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

Choice hydro_choice(const std::string& initial, Index cells = {13, 12, 11}) {
  Choice c;
  c.app = "hydro3d";
  c.grid = {3, cells, {false, false, false}};
  c.ranks = world_size();
  c.set["initial"] = initial;
  return c;
}

std::uint64_t checksum_of_gas(MPI_Comm comm, const Choice& choice, int steps) {
  haloscope::Run run(comm, choice);
  run.initialise();
  run.advance(steps, true);
  EXPECT_TRUE(run.canaries_alive());
  return run.checksum();
}

TEST(Hydro, DA9_DE1_DE2_RanksFormsSchedulesAndTransportsChangeNoBit) {
  for (const char* initial : {"random", "sedov"}) {
    Choice alone = hydro_choice(initial);
    alone.ranks = 1;
    alone.form = "scalar";
    const std::uint64_t expected = checksum_of_gas(MPI_COMM_SELF, alone, 3);
    Every one(9, 37);
    for (const char* form : {"vector", "fused", "scalar", "lines", "arrays"})
      for (const char* strategy :
           {"reference", "ordered/p2p", "direct:merged/persistent", "ordered/shared", "ordered:fields=type/p2p"})
        for (const char* exchange : {"studied", "needed"}) {
          Choice asked = hydro_choice(initial);
          asked.form = form;
          asked.strategy = strategy;
          asked.set["exchange"] = exchange;
          for (Choice c : by_schedules(asked)) {
            if (one.skips()) continue;
            if (c.form == "scalar") c.isa = "baseline";
            SCOPED_TRACE(describe(c));
            EXPECT_EQ(checksum_of_gas(MPI_COMM_WORLD, c, 3), expected);
          }
        }
  }
}

TEST(Hydro, ThreadsAndLongRowsChangeNoBit) {
  if (world_size() > 2) GTEST_SKIP() << "threads and ranks that share cores: left to few ranks";
  std::vector<std::uint64_t> found;
  for (int threads : {1, 2, 3})
    for (const char* schedule : {"bulk", "split"}) {
      Choice c = hydro_choice("random", {67, 9, 12});
      c.threads = threads;
      c.schedule = schedule;
      found.push_back(checksum_of_gas(MPI_COMM_WORLD, c, 4));
    }
  for (std::uint64_t one : found) EXPECT_EQ(one, found.front());
}

TEST(Hydro, AGridThatWrapsAroundGivesTheSameBitsToo) {
  Choice alone = hydro_choice("random");
  alone.grid.periodic = {true, false, true};
  Choice all = alone;
  alone.ranks = 1;
  EXPECT_EQ(checksum_of_gas(MPI_COMM_WORLD, all, 5), checksum_of_gas(MPI_COMM_SELF, alone, 5));
}

/// Nodes of walls never move along the wall's normal, to the last bit.
TEST(Hydro, NothingPassesAWall) {
  const Choice c = hydro_choice("random", {11, 10, 9});
  haloscope::Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(8);
  const Box cells = run.layout().owned(run.plan().rank);
  int walls = 0;
  for (int d = 0; d < 3; ++d)
    for (int side : {0, 1}) {
      if (side == 0 ? cells.lo[d] > 0 : cells.hi[d] < c.grid.cells[d]) continue;
      Index node;
      node[d] = side == 0 ? 0 : cells.extent(d);
      const int e = (d + 1) % 3, f = (d + 2) % 3;
      for (node[e] = 0; node[e] <= cells.extent(e); ++node[e])
        for (node[f] = 0; node[f] <= cells.extent(f); ++node[f]) {
          EXPECT_EQ(run.value(node, hydro::velocity + d), 0);
          ++walls;
        }
    }
  MPI_Allreduce(MPI_IN_PLACE, &walls, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_GE(walls, 2 * (12 * 11 + 11 * 10 + 10 * 12));
}

}  // namespace
}  // namespace haloscope::test
