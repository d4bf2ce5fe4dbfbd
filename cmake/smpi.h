/* Included before everything else in a build on SimGrid (preset simgrid), after what SMPI's compiler wrapper includes:
   that replaces exit(x) by a macro, which CLI11's functions of this name do not survive. */
#undef exit

/* In SMPI a nonblocking collective call is a message from each rank to each other, which takes minutes for 512 ranks. */
#include <mpi.h>
#define MPI_Ibarrier(comm, request) (*(request) = MPI_REQUEST_NULL, MPI_Barrier(comm))
#define MPI_Ibcast(at, count, type, root, comm, request) \
  (*(request) = MPI_REQUEST_NULL, MPI_Bcast(at, count, type, root, comm))
#define MPI_Iallreduce(in, out, count, type, op, comm, request) \
  (*(request) = MPI_REQUEST_NULL, MPI_Allreduce(in, out, count, type, op, comm))
#define MPI_Iallgather(in, count, type, out, each, of, comm, request) \
  (*(request) = MPI_REQUEST_NULL, MPI_Allgather(in, count, type, out, each, of, comm))
