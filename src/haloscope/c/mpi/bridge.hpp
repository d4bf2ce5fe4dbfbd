// Shared by the files of the C interface with MPI.
#pragma once

#include <string>
#include <vector>

#include "haloscope/c/bridge.hpp"
#include "haloscope/exchange.h"
#include "haloscope/exchange.hpp"

struct hs_grid {
  using Handle = void;
  MPI_Comm comm;
  hs_layout* handle;  // of its layout, which is freed with it
  int rank;
  std::vector<int> nodes;

  const haloscope::Layout& layout() const { return haloscope::c::needed(handle, "layout of the grid").layout; }
};

struct hs_exchange {
  using Handle = void;
  haloscope::Exchange exchange;
  std::string report;
};

namespace haloscope::c {

/// The communicator that an integer of Fortran stands for. The standard ABI has integers of C in its place.
inline MPI_Comm from_fortran(int comm) {
#ifdef MPI_ABI_VERSION
  return MPI_Comm_fromint(comm);
#else
  return MPI_Comm_f2c(comm);
#endif
}

}  // namespace haloscope::c
