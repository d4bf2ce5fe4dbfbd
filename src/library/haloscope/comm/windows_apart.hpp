// One-sided windows of different ranks that an MPI library confuses.
#pragma once

#include <mpi.h>

namespace haloscope {

/// Returns true if two windows that are made at the same time on one node, on communicators without a common rank,
/// may share memory.
/// This happens with Open MPI before version 5, unless OMPI_MCA_osc excludes component rdma: it names a window's
/// shared memory by node, job and context id, and such communicators may have the same context id
/// (open-mpi/ompi#9492).
bool windows_collide();

/// Checks the MPI library. @throws UnavailableError, on all ranks of `comm`, where its windows may share memory with
///         windows of other ranks. Local.
void require_windows_apart(MPI_Comm comm);

}  // namespace haloscope
