// A scheme by locks alone that the 2021 study rejects, shown to fail: the reason why no transport uses it.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "link_rig.hpp"

namespace haloscope {
namespace {

using namespace test;

constexpr int length = 64, iterations = 20;

/// The owner writes the line of each iteration under a lock on its own window. After the first it computes until the
/// reader has come for the next one; later ones come as they may.
void own(MPI_Win window, double* line) {
  for (int n = 1; n <= iterations; ++n) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    for (int i = 0; i < length; ++i) line[i] = n;
    MPI_Win_unlock(0, window);
    if (n > 1) continue;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/// The lines that a reader faster than the owner takes for lines of successive iterations.
std::vector<double> read(MPI_Win window, bool& whole) {
  std::vector<double> seen;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int n = 1; n <= iterations; ++n) {
    std::vector<double> line(length);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(line.data(), length, MPI_DOUBLE, 0, 0, length, MPI_DOUBLE, window);
    MPI_Win_unlock(0, window);
    whole = whole && std::all_of(line.begin(), line.end(), [&](double x) { return x == line[0]; });
    seen.push_back(line[0]);
    if (n == 2) MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
  return seen;
}

TEST(LocalLock, SC10_KeepsLinesWholeButLetsOneBeReadTwice) {
  if (world_size() < 2) GTEST_SKIP() << "needs a reader";
  double* line = nullptr;
  MPI_Win window;
  MPI_Win_allocate(world_rank() == 0 ? length * sizeof(double) : 0, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &line, &window);
  if (world_rank() == 0) {
    own(window, line);
  } else if (world_rank() == 1) {
    bool whole = true;
    const std::vector<double> seen = read(window, whole);
    EXPECT_TRUE(whole);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(seen[0], 1);
    EXPECT_EQ(seen[1], 1) << "the reader was kept from reading the first line twice";
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_free(&window);
}

}  // namespace
}  // namespace haloscope
