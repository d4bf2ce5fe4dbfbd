// Openings that are refused: they end as if they had never been, however far they came.
#include <gtest/gtest.h>
#include <mpi.h>

#include <string>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "haloscope/stepper.hpp"
#include "pmpi_counter.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

using test::error_of;
using test::world_size;

Grid<2> torus(MPI_Comm comm) { return {comm, {.cells = {10, 12}, .periodic = {true, true}}}; }

/// A step of two stages, each by a strategy of its own; the first one reduces.
std::vector<Stage> two_stages() {
  const auto stage = [](int from, int to) {
    const auto run = [=](const SweepArgs& args) {
      const auto in = args.read<double, 2>(from);
      const auto out = args.write<double, 2>(to);
      for (auto j = args.region.lo[1]; j < args.region.hi[1]; ++j)
        for (auto i = args.region.lo[0]; i < args.region.hi[0]; ++i) {
          out(i, j) = in(i - 1, j);
          if (args.reduced != nullptr) *args.reduced += out(i, j);
        }
    };
    return Stage{.name = "from " + std::to_string(from),
                 .sweeps = {{.name = "move", .reads = {{from, 1}}, .writes = {to}, .run = run}}};
  };
  std::vector<Stage> stages{stage(0, 1), stage(1, 0)};
  stages.front().reductions = {{.name = "sum"}};
  return stages;
}

/// More than there are communicators. Few on more ranks than cores, where they are slow.
int how_many() { return world_size() > 2 && !test::thorough() ? 100 : 3000; }

TEST(RefusedOpenings, ByTheThousandsOfAnExchangeLeaveRoomForAnother) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank shares no memory";
  const auto grid = torus(MPI_COMM_WORLD);
  const Field<double, 2> u(grid, {.halo = 1});
  make_exchange(grid, {u}, "direct/p2p").exchange();
  const test::Held before = test::held();
  for (int n = 0; n < how_many(); ++n)
    ASSERT_NE(error_of<Error>([&] { make_exchange(grid, {u}, "direct/shared", {.guard = true}); }), "no error");
  EXPECT_EQ(test::held(), before);
  make_exchange(grid, {u}, "direct/p2p", {.guard = true}).exchange();
}

/// Its last stage is refused, when the first one is open.
TEST(RefusedOpenings, ByTheThousandsOfAStepperLeaveRoomForAnother) {
  if (world_size() < 2) GTEST_SKIP() << "a lone rank shares no memory";
  const auto grid = torus(MPI_COMM_WORLD);
  const Field<double, 2> u(grid, {.halo = 1}), v(grid, {.halo = 1});
  const auto open = [&](const char* last) {
    Choice choice;
    choice.strategy = Strategy("direct/p2p");
    choice.stage_strategies = {{"from 1", Strategy(last)}};
    Stepper(grid, {u, v}, choice, two_stages(), {.guard = true}).run(1);
  };
  open("direct/p2p");
  const test::Held before = test::held();
  for (int n = 0; n < how_many(); ++n) ASSERT_NE(error_of<Error>([&] { open("direct/shared"); }), "no error");
  EXPECT_EQ(test::held(), before);
  open("ordered/rma-fence");
}

}  // namespace
}  // namespace haloscope
