// Whether MPI keeps apart the windows that different ranks make at the same time.
#pragma once

#include <mpi.h>

namespace haloscope {

/// Whether communicators without a rank in common may make one window of two, at the same time on one node: with Open MPI
/// before version 5, unless OMPI_MCA_osc leaves out component rdma. It names the shared memory of a window by node, job and
/// number of the communicator, and such communicators may have one number (open-mpi/ompi#9492).
bool windows_collide();

/// @throws UnavailableError, on all ranks of `comm`, where its windows may become those of other ranks. Local.
void require_windows_apart(MPI_Comm comm);

}  // namespace haloscope
