// Memory that MPI allocates for windows.
#pragma once

#include <mpi.h>

#include <cstddef>

namespace haloscope {

/// Checks memory before the windows of a link or reduction are made: MPI may get memory that the system cannot back,
/// and the process ends when it is written. Collective; cost: a reduction to all.
/// @param bytes  bytes of all windows that this rank is about to make.
/// @throws Error on all ranks where one of them requests more than require_memory() allows.
void require_window_memory(MPI_Comm comm, std::size_t bytes);

/// Calls MPI_Win_allocate; the window returns errors. Collective.
/// @param begin  out: the address of the memory, as a pointer of any type.
/// @throws MpiError where no communicator is left, or MPI refuses: with the bytes needed and available.
void allocate_window(MPI_Comm comm, std::size_t bytes, int unit, MPI_Info info, void* begin, MPI_Win* window);

}  // namespace haloscope
