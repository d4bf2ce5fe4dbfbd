// Waiting for all ranks to make a collective call: reported while some of them are late.
#pragma once

#include <mpi.h>

namespace haloscope {

/// Completes a nonblocking collective call of set-up by polling. A rank for which the others have not come after patience_s()
/// reports it, see ReportedWait.
/// @throws MpiError where MPI refuses.
void meet_in(MPI_Comm comm, MPI_Request& request);

}  // namespace haloscope
