/* What exchange.f90 needs of MPI. */
#include <mpi.h>
#include <stddef.h>

static MPI_Comm cart = MPI_COMM_NULL;

void begin_mpi(void) { MPI_Init(NULL, NULL); }
int world(void) { return MPI_Comm_c2f(MPI_COMM_WORLD); }
int own_rank(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int cartesian(void) { /* the last dimension is fastest */
  int ranks[2] = {0, 0}, size;
  const int wrap[2] = {1, 1};
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, ranks);
  MPI_Cart_create(MPI_COMM_WORLD, 2, ranks, wrap, 0, &cart);
  return MPI_Comm_c2f(cart);
}
void end_mpi(void) {
  MPI_Comm_free(&cart);
  MPI_Finalize();
}
