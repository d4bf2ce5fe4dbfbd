// Completing requests without MPI's spinning, on cores that ranks may share.
#pragma once

#include <mpi.h>
#include <sched.h>

namespace haloscope {

/// Completes a request.
/// @param yield  poll, so that the core can be yielded.
inline void settle(MPI_Request& request, bool yield) {
  if (!yield) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return;
  }
  int done = 0;
  for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) sched_yield();
}

/// A barrier. Collective over `comm`.
inline void meet(MPI_Comm comm, bool yield) {
  if (!yield) {
    MPI_Barrier(comm);
    return;
  }
  MPI_Request request;
  MPI_Ibarrier(comm, &request);
  settle(request, true);
}

}  // namespace haloscope
