/* Functions of MPI that misuse.f90 needs besides mpi_for_fortran.c. Communicators are made once each, and last. */
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>

#include "to_fortran.h"

/* True if MPI allows all threads, or the first one alone, as requested. */
int begin_mpi_with_threads(int all) {
  const int wanted = all ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
  int level;
  MPI_Init_thread(NULL, NULL, wanted, &level);
  return level == wanted;
}

int no_communicator(void) { return to_fortran(MPI_COMM_NULL); }

/* A ring. */
int graph(void) {
  int index[64], edges[64], size, r;
  MPI_Comm made;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (r = 0; r < size; ++r) index[r] = r + 1, edges[r] = (r + 1) % size;
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &made);
  return to_fortran(made);
}

/* The same, where each rank specifies only its neighbours. */
int distributed_graph(void) {
  int rank, size, next, before;
  MPI_Comm made;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &made);
  return to_fortran(made);
}

/* Between the even and the odd ranks, of which there are some. */
int inter_communicator(void) {
  int rank;
  MPI_Comm half, made;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &made);
  return to_fortran(made);
}

static pthread_t other;
static void (*work)(void);

static void* do_work(void* nothing) {
  work();
  return nothing;
}

/* Calls a procedure on a second thread. */
void begin_thread(void (*procedure)(void)) {
  work = procedure;
  pthread_create(&other, NULL, do_work, NULL);
}
void end_thread(void) { pthread_join(other, NULL); }
