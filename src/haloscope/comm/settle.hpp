// Completing requests without MPI's spinning, on cores that ranks may share.
#pragma once

#include <mpi.h>

#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/core/spin.hpp"

namespace haloscope {

/// Completes a request.
/// @param yield  poll, so that the core can be yielded.
inline void settle(MPI_Request& request, bool yield) {
  if (!yield) {
    REQUIRE_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return;
  }
  int done = 0;
  for (Spin spin(true); REQUIRE_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE)), !done;) spin.again();
}

/// Completes all requests.
inline void settle(std::vector<MPI_Request>& requests, bool yield) {
  const auto count = static_cast<int>(requests.size());
  if (!yield) {
    REQUIRE_MPI(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE));
    return;
  }
  int done = 0;
  for (Spin spin(true); REQUIRE_MPI(MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE)), !done;)
    spin.again();
}

/// A barrier. Collective over `comm`.
inline void meet(MPI_Comm comm, bool yield) {
  if (!yield) {
    REQUIRE_MPI(MPI_Barrier(comm));
    return;
  }
  MPI_Request request;
  REQUIRE_MPI(MPI_Ibarrier(comm, &request));
  settle(request, true);
}

}  // namespace haloscope
