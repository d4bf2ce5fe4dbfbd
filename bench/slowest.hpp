// The time of a call on the slowest rank.
#pragma once

#include <mpi.h>

#include <chrono>

#include "harness.hpp"

namespace haloscope::bench {

/// Returns the seconds that a call takes on the slowest rank. Collective.
template <class Call>
double slowest_s(const Call& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  call();
  double worst = seconds_since(begin);
  MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return worst;
}

}  // namespace haloscope::bench
