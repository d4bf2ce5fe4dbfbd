// The MPI of C++ programs: the one that the library was built for.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include "haloscope/which_mpi.h"

#if defined(MPI_ABI_VERSION) && !defined(HALOSCOPE_FOR_ABI)  // set where the library is compiled
#error \
    "The C++ interface of Haloscope is for one MPI, and the program is compiled for the standard ABI: compile with the \
mpicxx of that MPI, or use the C interface, haloscope/exchange.h, with haloscope::exchange_abi"
#endif

namespace haloscope {

/// Checks that MPI can be called. @throws UsageError before MPI_Init and after MPI_Finalize, where another MPI is
/// running than the one that the library was built for, and on a thread that may not call MPI. Local; legal at any
/// time.
void require_mpi();

}  // namespace haloscope
