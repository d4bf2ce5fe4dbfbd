/* Included before everything else in a build on SimGrid (preset simgrid), after what SMPI's compiler wrapper includes:
   that replaces exit(x) by a macro, which CLI11's functions of this name do not survive. */
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
