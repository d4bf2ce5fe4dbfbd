// Texts that MPI and the system have, and that ranks tell each other.
#pragma once

#include <mpi.h>

#include <string>

namespace haloscope {

/// What the MPI library calls itself: the first line of its version. Legal before MPI_Init.
std::string mpi_library();

/// The major version of Open MPI; 0 where the MPI library is another one. Legal before MPI_Init.
int open_mpi_version();

/// The present time in UTC, as 2026-11-23T09:30:00Z.
std::string utc_now();

/// The text of one rank, on all ranks of `comm`. Collective; cost: two broadcasts.
std::string text_of_rank(MPI_Comm comm, int rank, std::string text);

}  // namespace haloscope
