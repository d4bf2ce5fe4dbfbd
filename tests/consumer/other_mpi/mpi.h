/* The header of the MPI that is found, under the name of another one: -DAS_MPICH, -DAS_OPENMPI, -DAS_ABI or
 * -DAS_OTHER. */
#include_next <mpi.h>
#undef MPI_ABI_VERSION
#undef MPICH_NAME
#undef MPICH_VERSION
#undef I_MPI_VERSION
#undef OMPI_MAJOR_VERSION
#if defined(AS_MPICH)
#define MPICH_NAME 4
#elif defined(AS_OPENMPI)
#define OMPI_MAJOR_VERSION 4
#elif defined(AS_ABI)
#define MPI_ABI_VERSION 1
#endif
