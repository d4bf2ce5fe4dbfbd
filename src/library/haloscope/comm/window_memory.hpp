// Memory of windows: checks before it is allocated, its allocation, and its model.
#pragma once

#include <mpi.h>

#include <cstddef>

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

/// Checks memory before the windows of a link or reduction are made: MPI may get memory that the system cannot back,
/// and the process ends when it is written. Collective; cost: a reduction to all.
/// @param bytes  bytes of all windows that this rank is about to make.
/// @throws Error on all ranks where one of them requests more than require_memory() allows.
void require_window_memory(MPI_Comm comm, std::size_t bytes);

/// Calls MPI_Win_allocate; the window returns errors. Collective.
/// @param begin  out: the address of the memory, as a pointer of any type.
/// @throws MpiError where no communicator is left, or MPI refuses: with the bytes needed and available.
void allocate_window(MPI_Comm comm, std::size_t bytes, int unit, MPI_Info info, void* begin, MPI_Win* window);

/// Returns true if MPI's memory model for a window is "unified". Local.
bool is_unified(MPI_Win window);

}  // namespace haloscope
