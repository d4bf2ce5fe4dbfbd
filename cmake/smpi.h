/* Replacements for a build on SimGrid (preset simgrid), included before all sources, but after the headers of SMPI's
   compiler wrapper: these replace exit(x) by a macro, which breaks CLI11's functions of this name. */
#undef exit

/* A nonblocking collective call of SMPI sends a message from every rank to every other one, which takes minutes with
   512 ranks. These block. */
#include <mpi.h>
#define MPI_Ibarrier(comm, request) (*(request) = MPI_REQUEST_NULL, MPI_Barrier(comm))
#define MPI_Ibcast(at, count, type, root, comm, request) \
  (*(request) = MPI_REQUEST_NULL, MPI_Bcast(at, count, type, root, comm))
#define MPI_Iallreduce(in, out, count, type, op, comm, request) \
  (*(request) = MPI_REQUEST_NULL, MPI_Allreduce(in, out, count, type, op, comm))
#define MPI_Iallgather(in, count, type, out, each, of, comm, request) \
  (*(request) = MPI_REQUEST_NULL, MPI_Allgather(in, count, type, out, each, of, comm))
