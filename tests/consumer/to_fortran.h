/* A communicator as programs in Fortran have it. */
#ifndef HALOSCOPE_TEST_TO_FORTRAN_H
#define HALOSCOPE_TEST_TO_FORTRAN_H

#include <mpi.h>

static int to_fortran(MPI_Comm comm) {
#ifdef MPI_ABI_VERSION /* where Fortran's integers are C's */
  return MPI_Comm_toint(comm);
#else
  return MPI_Comm_c2f(comm);
#endif
}

#endif
