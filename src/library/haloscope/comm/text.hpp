// Texts of MPI and of the system, and texts that ranks share.
#pragma once

#include <mpi.h>

#include <string>

namespace haloscope {

/// Returns the name of the MPI library: the first line of its version. Legal before MPI_Init.
std::string mpi_library();

/// Returns the major version of Open MPI; 0 for other MPI libraries. Legal before MPI_Init.
int open_mpi_version();

/// Returns the current time in UTC, as 2026-11-23T09:30:00Z.
std::string utc_now();

/// Returns the text of one rank, on all ranks of `comm`. Collective; cost: two broadcasts.
std::string text_of_rank(MPI_Comm comm, int rank, std::string text);

}  // namespace haloscope
