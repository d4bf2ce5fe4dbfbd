// Shared by the files of the C interface with MPI.
#pragma once

#include <string>
#include <vector>

#include "bindings/c/border.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/exchange.h"
#include "haloscope/exchange.hpp"

struct hs_grid {
  using Handle = void;
  MPI_Comm comm;
  haloscope::Layout layout;
  int rank;
  std::vector<int> nodes;
};

struct hs_exchange {
  using Handle = void;
  haloscope::Exchange exchange;
  std::string report;
};

namespace haloscope::c {

/// Returns a field of C. @param number  from 0, for its name. @throws UsageError for a field without memory.
FieldRef field_of(const hs_field& from, int number, int slots);

/// MPI's conversion. Before MPI's start and after its end Open MPI reacts to it by ending the job.
inline MPI_Comm converted(int comm) {
#ifdef MPI_ABI_VERSION
  return MPI_Comm_fromint(comm);
#else
  return MPI_Comm_f2c(comm);
#endif
}

/// The communicator of an integer of Fortran, or of C in the standard ABI.
/// @throws UsageError as require_mpi(), and as require_communicator() where MPI refuses the communicator on some ranks.
inline MPI_Comm from_fortran(int comm) {
  try {
    require_mpi();
  } catch (const MpiError&) {
    fail_together(converted(comm));
  }
  return converted(comm);
}

}  // namespace haloscope::c
