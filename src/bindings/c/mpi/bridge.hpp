// Shared by the files of the C interface with MPI.
#pragma once

#include <string>
#include <vector>

#include "bindings/c/border.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/exchange.h"
#include "haloscope/exchange.hpp"
#include "haloscope/redistribution.hpp"

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

struct hs_redistribution {
  using Handle = void;
  haloscope::Redistribution redistribution;
  std::string report;
};

namespace haloscope::c {

/// Returns `count` fields of C. @param name  of the argument. @param number  of the first one, from 0, for its name.
std::vector<FieldRef> fields_of(const hs_field* fields, int count, int slots, const char* name, int number = 0);
/// Returns a field of one slot, in each block of this rank. @param number  of the first one, from 0, for its name.
std::vector<FieldRef> field_of_blocks(const hs_grid& on, const hs_field* blocks, int number, const char* name);
/// Returns the options of an exchange or a redistribution. @throws UsageError for less than one slot.
hs_exchange_options options_of(const hs_exchange_options* passed);

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
