// The MPI of the C interface: calls from a program that was compiled for another MPI are refused by their names.
#include "bindings/c/mpi/bridge.hpp"

using namespace haloscope;
using namespace haloscope::c;

namespace {

hs_status refused(const char* theirs) {
  return guarded([&] {
    throw UsageError(std::string("the program was compiled for ") + theirs +
                     ", but this library was built for " HS_BUILT_FOR_THIS ": " HS_MPI_REMEDY);
  });
}

}  // namespace

// Their arguments, handles of another MPI among them, are not read.
#define REFUSE(family, theirs)                                    \
  hs_status hs_grid_create_##family() { return refused(theirs); } \
  hs_status hs_doctor_##family() { return refused(theirs); }

extern "C" {
#ifndef MPI_ABI_VERSION
REFUSE(abi, HS_ABI_OF_MPI)
#endif
#if defined(MPI_ABI_VERSION) || !HS_BUILT_FOR_MPICH
REFUSE(mpich, "MPICH or a relative of it")
#endif
#if defined(MPI_ABI_VERSION) || !HS_BUILT_FOR_OPENMPI
REFUSE(openmpi, "Open MPI")
#endif
#if defined(MPI_ABI_VERSION) || HS_BUILT_FOR_MPICH || HS_BUILT_FOR_OPENMPI
REFUSE(other_mpi, "another MPI than MPICH and Open MPI")
#endif
}
