// Exchanges that the guard refused: no data arrives in their arrays any more, however late a neighbour is.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "haloscope/haloscope.hpp"
#include "pmpi_counter.hpp"
#include "random_case.hpp"
#include "tori.hpp"
#include "world.hpp"

namespace haloscope::test {
namespace {

bool holds_only(const Grid<2>& grid, const Field<double, 2>& u, double value) {
  bool only = true;
  each_cell(grid, 1, [&](auto i, auto j) { only = only && u[0](i, j) == value; });
  return only;
}

/// Receives messages while neighbours finish their work.
void drain_messages() {
  int there = 0;
  for (int poll = 0; poll < 100; ++poll) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Rank 1 makes an exchange more than the others, and pauses after the notes that it sends in the one that differs.
/// @param before  exchanges that are equal on all ranks.
void refuse_and_free(const Grid<2>& grid, const Field<double, 2>& u, const std::string& strategy, int before) {
  SCOPED_TRACE(strategy);
  {
    Exchange halo = make_exchange(grid, {u}, strategy, {.guard = true});
    for (int n = 0; n < before; ++n) {
      halo.changed();
      halo.exchange();
    }
    const bool late = grid.rank() == 1;
    if (!late) halo.changed();
    pause_after_send_s() = late ? 0.1 : 0;
    const std::string error = error_of([&] { halo.exchange(); });
    pause_after_send_s() = 0;
    EXPECT_PART(error, "differs between rank");
  }
  each_cell(grid, 1, [&](auto i, auto j) { u[0](i, j) = -1; });
  drain_messages();
  EXPECT_TRUE(holds_only(grid, u, -1));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(OutOfStep, NothingIsStoredIntoArraysOfAnExchangeThatWasRefusedAndFreed) {
  if (world_size() < 2 || world_size() > 3) return;  // all ranks are neighbours of rank 1
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {8, 12}, .periodic = {true, true}}};
  const Field<double, 2> u{grid, {.halo = 1, .memory = MemoryKind::shared}};
  for (const std::string strategy :
       {"direct/shared", "ordered/shared", "direct/shared:fence", "direct/shared:pull", "direct/shared:packed",
        "direct/p2p", "direct/persistent", "direct/rma-lockall:get", "direct/rma-lockall:rget"})
    refuse_and_free(grid, u, strategy, 2);
  for (int before = 0; before < 16; before += 5) refuse_and_free(grid, u, "direct/auto", before);
}

TEST(OutOfStep, LinksWhoseNeighboursStoreIntoTheFieldsAreAwaited) {
  const auto awaited = [](const std::string& transport, const std::vector<std::string>& options, bool shared_fields) {
    Case c = periodic_cube(2, {});
    c.transport = transport;
    c.options = options;
    c.shared_fields = shared_fields;
    return Rig(c).link->must_be_awaited();
  };
  EXPECT_TRUE(awaited("shared", {}, true));
  EXPECT_TRUE(awaited("shared", {"fence"}, true));
  EXPECT_FALSE(awaited("shared", {"pull"}, true));
  EXPECT_FALSE(awaited("shared", {"packed"}, false));
  EXPECT_EQ(awaited("auto", {"quick"}, true), world_size() > 1);  // with shared memory among the candidates
  EXPECT_FALSE(awaited("auto", {"quick"}, false));
}

}  // namespace
}  // namespace haloscope::test
