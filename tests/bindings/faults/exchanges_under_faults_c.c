/* The exchanges of exchanges_under_faults_haloscope, through the C interface: while calls of MPI fail, each rank prints
 * the exchanges' reports, then "right", "wrong" or "refused: TEXT".
 *   usage: exchanges_under_faults_c STRATEGY */
#include <haloscope/exchange.h>
#include <stdio.h>
#include <stdlib.h>

#include "points.h"

static const char* refused = NULL;

static int failed(hs_status status) {
  if (status != HS_OK && refused == NULL) refused = hs_last_error();
  return status != HS_OK;
}

/* 1: right, 0: wrong, or a call was refused. */
static int exchange_all(const char* strategy, int rank) {
  hs_grid_options split;
  hs_exchange_options how;
  hs_grid* grid = NULL;
  hs_exchange* halo = NULL;
  hs_box own;
  hs_field field;
  void *first, *other;
  const char* report;
  double *memory, *more;
  int64_t row;
  int turn, step, right = 1;
  hs_grid_init(&split);
  split.cells[0] = 10, split.cells[1] = 12;
  split.periodic[0] = split.periodic[1] = 1;
  if (failed(hs_grid_create(MPI_COMM_WORLD, &split, &grid)) || failed(hs_grid_owned(grid, &own))) return 0;
  row = own.hi[0] - own.lo[0] + 2;
  memory = calloc((size_t)(row * (own.hi[1] - own.lo[1] + 2)), sizeof *memory);
  first = memory + row + 1;
  more = calloc((size_t)(row * (own.hi[1] - own.lo[1] + 2)), sizeof *memory);
  other = more + row + 1;
  hs_field_init(&field);
  field.first = &first;
  field.stride[0] = sizeof *memory;
  field.stride[1] = row * (int64_t)sizeof *memory;
  field.low[0] = field.low[1] = field.high[0] = field.high[1] = 1;
  hs_exchange_init(&how);
  how.strategy = strategy;
  for (turn = 0; turn < 2; ++turn) {
    if (failed(hs_exchange_create(grid, &field, 1, &how, &halo))) return 0;
    for (step = 0; step < 3; ++step) {
      visit(first, row, &own, 0, 1);
      if (failed(hs_exchange_run(halo, 0))) return 0;
      right = right && visit(first, row, &own, 1, 0);
    }
    if (failed(hs_exchange_accumulate(halo, 0)) || failed(hs_exchange_report(halo, &report))) return 0;
    printf("report: %s\n", report);
    if (hs_exchange_rebind(halo, 0, &other) != HS_OK) { /* a second try must succeed */
      printf("rank %d: refused: %s\n", rank, hs_last_error());
      if (hs_exchange_rebind(halo, 0, &other) != HS_OK) return 0;
    }
    visit(other, row, &own, 0, 1);
    if (failed(hs_exchange_run(halo, 0))) return 0;
    right = right && visit(other, row, &own, 1, 0);
    if (failed(hs_exchange_free(halo))) return 0;
  }
  if (failed(hs_grid_free(grid))) return 0;
  free(memory);
  free(more);
  return right;
}

int main(int argc, char** argv) {
  int rank, right;
  if (argc != 2) return 2;
  PMPI_Init(&argc, &argv);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  right = exchange_all(argv[1], rank);
  if (refused != NULL)
    printf("rank %d: refused: %s\n", rank, refused);
  else
    printf("rank %d: %s\n", rank, right ? "right" : "wrong");
  fflush(stdout);
  PMPI_Barrier(MPI_COMM_WORLD);
  if (!right) _Exit(1); /* after a failed call MPI_Finalize may wait indefinitely */
  PMPI_Finalize();
  return 0;
}
