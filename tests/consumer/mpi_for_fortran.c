/* Functions of MPI that the programs in Fortran need. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "to_fortran.h"

static MPI_Comm cart = MPI_COMM_NULL, plane = MPI_COMM_NULL;

void begin_mpi(void) { MPI_Init(NULL, NULL); }
int world(void) { return to_fortran(MPI_COMM_WORLD); }
int own_rank(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }
int rank_count(void) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}
/* A Cartesian communicator, the only one at a time. ranks, wrap  per dimension. */
int cartesian_of(int dims, const int* ranks, const int* wrap) {
  if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
  MPI_Cart_create(MPI_COMM_WORLD, dims, ranks, wrap, 0, &cart);
  return to_fortran(cart);
}
/* A periodic one of two dimensions, the same for all grids, which use it until the end. The last dimension is
 * fastest. */
int cartesian(void) {
  int ranks[2] = {0, 0};
  const int wrap[2] = {1, 1};
  if (plane == MPI_COMM_NULL) {
    MPI_Dims_create(rank_count(), 2, ranks);
    MPI_Cart_create(MPI_COMM_WORLD, 2, ranks, wrap, 0, &plane);
  }
  return to_fortran(plane);
}
/* Prints the sum of the ranks' numbers, modulo 2^64, on rank 0. */
void print_sum(int64_t mine) {
  uint64_t all = 0, own = (uint64_t)mine;
  MPI_Reduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (own_rank() == 0) printf("%016llx\n", (unsigned long long)all);
}
void end_mpi(void) {
  if (plane != MPI_COMM_NULL) MPI_Comm_free(&plane);
  if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
  MPI_Finalize();
}
