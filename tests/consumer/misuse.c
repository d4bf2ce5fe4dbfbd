/* Calls that the C interface refuses by name, after which the program goes on: arrays that share memory, communicators
 * of graphs, calls of a second thread.
 * With the word "threads" all threads may call MPI. */
#include <haloscope/exchange.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { cells = 12, row = cells + 2 };
static double u[row * row], v[row * row];

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

static int refused_with(hs_status status, const char* part) {
  return status == HS_USAGE && strstr(hs_last_error(), part) != NULL;
}

static void begin_grid(hs_grid_options* split) {
  hs_grid_init(split);
  split->dims = 2;
  split->cells[0] = split->cells[1] = cells;
  split->periodic[0] = split->periodic[1] = 1;
}

static hs_field field_at(const char* name, void** first) {
  hs_field field;
  hs_field_init(&field);
  field.name = name;
  field.first = first;
  field.stride[0] = sizeof *u;
  field.stride[1] = row * (int64_t)sizeof *u;
  field.low[0] = field.low[1] = field.high[0] = field.high[1] = 1;
  return field;
}

/* The same array twice, and one that begins in the other's ghost points, are refused. */
static int wrong_aliases(const hs_grid* grid, const hs_box* own) {
  void *first = u + row + 1, *second = u + row + 1, *third = v + row + 1;
  hs_field fields[2];
  hs_exchange_options how;
  hs_exchange* halo;
  hs_exchange_init(&how);
  how.strategy = "ordered/p2p";
  fields[0] = field_at("hot", &first);
  fields[1] = field_at("cold", &second);
  if (!refused_with(hs_exchange_create(grid, fields, 2, &how, &halo), "'hot'") || !strstr(hs_last_error(), "'cold'") ||
      !strstr(hs_last_error(), "share memory"))
    return 1;
  second = u + row + 1 + (own->hi[0] - own->lo[0]);
  if (!refused_with(hs_exchange_create(grid, fields, 2, &how, &halo), "share memory")) return 1;
  fields[0].name = fields[1].name = NULL;
  if (!refused_with(hs_exchange_create(grid, fields, 2, &how, &halo), "'field 2'")) return 1;
  fields[1].first = &third;
  check(hs_exchange_create(grid, fields, 2, &how, &halo));
  check(hs_exchange_rebind(halo, 0, (void*[]){u + row + 1, u + row + 1})); /* as on the way to other memory */
  if (!refused_with(hs_exchange_accumulate(halo, 0), "share memory")) return 1;
  check(hs_exchange_rebind(halo, 0, (void*[]){u + row + 1, v + row + 1}));
  check(hs_exchange_accumulate(halo, 0));
  check(hs_exchange_run(halo, 0));
  check(hs_exchange_free(halo));
  return 0;
}

/* A ring, of both kinds of graph. */
static int wrong_graphs(int rank, int size) {
  int index[64], edges[64], next = (rank + 1) % size, before = (rank + size - 1) % size, r;
  MPI_Comm graph;
  hs_grid_options split;
  hs_grid* grid;
  begin_grid(&split);
  for (r = 0; r < size; ++r) index[r] = r + 1, edges[r] = (r + 1) % size;
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph);
  if (!refused_with(hs_grid_create(graph, &split, &grid), "graph")) return 1;
  MPI_Comm_free(&graph);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &graph);
  if (!refused_with(hs_grid_create(graph, &split, &grid), "graph")) return 1;
  split.split = HS_SPLIT_CARTESIAN;
  if (!refused_with(hs_grid_create(graph, &split, &grid), "no Cartesian topology")) return 1;
  MPI_Comm_free(&graph);
  return 0;
}

static void* run(void* halo) {
  static int refused;
  refused = refused_with(hs_exchange_run(halo, 0), "came from another thread");
  return refused ? &refused : NULL;
}

static void* finish(void* halo) {
  while (hs_exchange_finish(halo) != HS_OK) continue; /* while the first thread is in a call */
  return NULL;
}

/* Where MPI allows one thread, a call of another is refused. Where it allows all, rank 0 waits on one thread for ranks
 * that begin when the other one has been refused. */
static int wrong_threads(const hs_grid* grid, int threads, int rank, int size) {
  void *first = u + row + 1, *refused;
  const hs_field field = field_at("hot", &first);
  hs_exchange_options how;
  hs_exchange* halo;
  pthread_t other;
  int32_t done;
  int wrong = 0;
  hs_exchange_init(&how);
  how.strategy = "ordered/p2p";
  check(hs_exchange_create(grid, &field, 1, &how, &halo));
  if (!threads) {
    pthread_create(&other, NULL, run, halo);
    pthread_join(other, &refused);
    wrong = refused == NULL;
  } else if (size > 1 && rank == 0) {
    check(hs_exchange_start(halo, 0));
    pthread_create(&other, NULL, finish, halo);
    while (hs_exchange_progress(halo, &done) == HS_OK) continue;
    wrong = !strstr(hs_last_error(), "another thread was in a call");
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_join(other, NULL);
  } else if (size > 1) {
    MPI_Barrier(MPI_COMM_WORLD);
    check(hs_exchange_run(halo, 0));
  }
  check(hs_exchange_run(halo, 0));
  check(hs_exchange_free(halo));
  return wrong;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 && strcmp(argv[1], "threads") == 0;
  int rank, size, level;
  hs_grid_options split;
  hs_grid* grid;
  hs_box own;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  begin_grid(&split);
  check(hs_grid_create(MPI_COMM_WORLD, &split, &grid));
  check(hs_grid_owned(grid, &own));
  if (wrong_aliases(grid, &own))
    printf("rank %d: wrong aliases: %s\n", rank, hs_last_error());
  else if (wrong_graphs(rank, size))
    printf("rank %d: wrong graphs: %s\n", rank, hs_last_error());
  else if (level == (threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED) && wrong_threads(grid, threads, rank, size))
    printf("rank %d: wrong threads: %s\n", rank, hs_last_error());
  else
    printf("rank %d: right\n", rank);
  check(hs_grid_free(grid));
  MPI_Finalize();
  return 0;
}
