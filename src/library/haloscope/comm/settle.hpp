// Completion of requests without MPI's spinning, on cores that ranks may share.
#pragma once

#include <mpi.h>

#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/spin.hpp"

namespace haloscope {

/// Returns true if waits of this thread poll and check for failures of other ranks, instead of waiting inside MPI;
/// equal on all ranks.
inline bool waits_are_watched() { return look_for_failures != nullptr; }

/// Completes a request.
/// @param yield  poll, so that the core can be yielded.
/// @throws PeerFailure within a FailureWatch; the request is then still in flight.
inline void settle(MPI_Request& request, bool yield) {
  if (!yield && !waits_are_watched()) {
    REQUIRE_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return;
  }
  int done = 0;
  for (Spin spin(yield); REQUIRE_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE)), !done;) spin.again();
}

/// Completes all requests.
inline void settle(std::vector<MPI_Request>& requests, bool yield) {
  const auto count = static_cast<int>(requests.size());
  if (!yield && !waits_are_watched()) {
    REQUIRE_MPI(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE));
    return;
  }
  int done = 0;
  for (Spin spin(yield); REQUIRE_MPI(MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE)), !done;)
    spin.again();
}

/// Waits at a barrier. Collective over `comm`.
inline void meet(MPI_Comm comm, bool yield) {
  if (!yield && !waits_are_watched()) {
    REQUIRE_MPI(MPI_Barrier(comm));
    return;
  }
  MPI_Request request;
  REQUIRE_MPI(MPI_Ibarrier(comm, &request));
  settle(request, yield);
}

}  // namespace haloscope
