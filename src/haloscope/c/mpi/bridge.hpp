// Shared by the files of the C interface with MPI.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "haloscope/c/bridge.hpp"
#include "haloscope/exchange.h"
#include "haloscope/exchange.hpp"

struct hs_grid {
  MPI_Comm comm;
  hs_layout layout;
  int rank;
  std::vector<int> nodes;
};

struct hs_exchange {
  haloscope::Exchange exchange;
  std::string report;
};

namespace haloscope::c {

/// @throws UsageError before MPI_Init and after MPI_Finalize, and where another MPI than this library's is running.
void require_mpi();

}  // namespace haloscope::c
