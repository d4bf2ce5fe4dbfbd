/* The program of transposes.cpp in C: filters along rows and columns, with redistributions in between. */
#include <haloscope/exchange.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { steps = 10, nx = 20, ny = 14 };

typedef struct block {
  hs_grid* grid;
  hs_box own;
  int64_t x, y;
  double* u;
  void* first;
  hs_field field;
} block;

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

static double initial(int64_t i, int64_t j) { return (double)((i * 7919 + j * 104729) % 1000003) / 1000003; }

/* Splits the grid: by a process grid, or over some of the ranks. */
static void split(block* of, const char* process_grid, int32_t active_ranks) {
  hs_grid_options options;
  hs_grid_init(&options);
  options.dims = 2;
  options.cells[0] = nx, options.cells[1] = ny;
  options.process_grid = process_grid;
  options.active_ranks = active_ranks;
  check(hs_grid_create(MPI_COMM_WORLD, &options, &of->grid));
  check(hs_grid_owned(of->grid, &of->own));
  of->x = of->own.hi[0] - of->own.lo[0];
  of->y = of->own.hi[1] - of->own.lo[1];
  of->u = of->x > 0 ? calloc((size_t)(of->x * of->y), sizeof *of->u) : NULL;
  of->first = of->u;
  hs_field_init(&of->field);
  of->field.first = &of->first;
  of->field.stride[0] = sizeof(double);
  of->field.stride[1] = of->x * (int64_t)sizeof(double);
}

static hs_redistribution* opened(const block* from, const block* to, const char* strategy) {
  hs_redistribution* found;
  hs_exchange_options how;
  hs_exchange_init(&how);
  how.strategy = strategy;
  check(hs_redistribution_create(from->grid, to->grid, &from->field, &to->field, 1, &how, &found));
  return found;
}

static void filter(const block* of, int64_t apart, int64_t from_x, int64_t from_y) {
  int64_t i, j;
  for (j = from_y; j < of->y; ++j)
    for (i = from_x; i < of->x; ++i) {
      double* const at = of->u + j * of->x + i;
      *at = 0.25 * *at + 0.5 * *(at - apart);
    }
}

int main(int argc, char** argv) {
  block rows, columns, whole;
  hs_redistribution *forth, *back, *gather;
  const char *strategy, *report;
  char by_rows[24], by_columns[24];
  uint64_t sum = 0, bits;
  int64_t i, j;
  int n, size;
  int32_t done = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  strategy = argc > 1 ? argv[1] : NULL;
  snprintf(by_rows, sizeof by_rows, "1x%d", size);
  snprintf(by_columns, sizeof by_columns, "%dx1", size);
  split(&rows, by_rows, 0);
  split(&columns, by_columns, 0);
  split(&whole, NULL, 1);
  forth = opened(&rows, &columns, strategy);
  back = opened(&columns, &rows, strategy);
  gather = opened(&rows, &whole, "direct/p2p");
  for (j = 0; j < rows.y; ++j)
    for (i = 0; i < rows.x; ++i) rows.u[j * rows.x + i] = initial(i, rows.own.lo[1] + j);
  for (n = 0; n < steps; ++n) {
    filter(&rows, 1, 1, 0);
    check(hs_redistribution_run(forth, 0));
    filter(&columns, columns.x, 0, 1);
    check(hs_redistribution_start(back, 0));
    check(hs_redistribution_progress(back, &done));
    check(hs_redistribution_finish(back));
  }
  check(hs_redistribution_run(gather, 0));
  check(hs_redistribution_report(gather, &report));
  if (strncmp(report, "direct/p2p: rank ", 17) != 0) return 1;
  for (j = 0; j < whole.y; ++j)
    for (i = 0; i < whole.x; ++i) {
      memcpy(&bits, whole.u + j * whole.x + i, sizeof bits);
      sum += bits * (uint64_t)(2 * (j * nx + i) + 1);
    }
  if (whole.x > 0) printf("%016llx\n", (unsigned long long)sum);
  check(hs_redistribution_free(gather));
  check(hs_redistribution_free(back));
  check(hs_redistribution_free(forth));
  check(hs_grid_free(rows.grid));
  check(hs_grid_free(columns.grid));
  check(hs_grid_free(whole.grid));
  free(rows.u);
  free(columns.u);
  free(whole.u);
  MPI_Finalize();
  return 0;
}
