// Collective calls of set-up that a rank leaves because another one has failed.
#include "haloscope/comm/together.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>

#include "haloscope/comm/shared_failure.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

int largest(MPI_Comm comm, int mine) {
  std::array<int, 1> number{mine};
  reduce_together(comm, number, MPI_INT, MPI_MAX);
  return number[0];
}

/// Begins a call that no other rank has come to, and leaves it.
void leave_a_call(MPI_Comm comm) {
  look_for_failures = [] { throw PeerFailure("another rank has failed"); };
  EXPECT_THROW(largest(comm, 1), PeerFailure);
  look_for_failures = nullptr;
}

TEST(Together, ACallThatARankHasLeftSharesNoMemoryWithItsNextCall) {
  if (test::world_size() == 1) return;  // nothing is in flight
  const int rank = test::world_rank();
  MPI_Comm left;
  MPI_Comm_dup(MPI_COMM_WORLD, &left);  // stays: a call is in flight on it
  EXPECT_EQ(largest(MPI_COMM_WORLD, rank == 0 ? 5 : 2), 5);
  if (rank == 0) leave_a_call(left);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) {
    EXPECT_EQ(largest(left, 100), 100);
  }
  EXPECT_EQ(largest(MPI_COMM_WORLD, rank == 0 ? 7 : 3), 7);
  EXPECT_EQ(largest(MPI_COMM_WORLD, rank == 0 ? 8 : 3), 8);
}

}  // namespace
}  // namespace haloscope
