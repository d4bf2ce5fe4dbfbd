/* The program of nodes.cpp in C: forces of cells added up at nodes, positions shared from the owners of nodes. */
#include <haloscope/exchange.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { steps = 10, nx = 20, ny = 14 };
static const double unit = 1.0 / (1 << 20);

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

static double initial(int64_t i, int64_t j) { return (double)((i * 7919 + j * 104729) % 1000003) / 1000003; }

int main(int argc, char** argv) {
  hs_grid_options split;
  hs_exchange_options how;
  hs_grid* grid;
  hs_exchange* halo;
  hs_field list[2];
  hs_part positions, forces;
  hs_box own;
  const int32_t first_field = 0, second_field = 1;
  double *p, *force;
  uint64_t sum = 0, all = 0;
  int64_t i, j, x, y, row;
  int n, rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  hs_grid_init(&split);
  split.dims = 2;
  split.cells[0] = nx, split.cells[1] = ny;
  split.periodic[0] = split.periodic[1] = 1;
  check(hs_grid_create(MPI_COMM_WORLD, &split, &grid));
  check(hs_grid_owned(grid, &own));
  x = own.hi[0] - own.lo[0], y = own.hi[1] - own.lo[1], row = x + 1;
  p = malloc((size_t)(row * (y + 1)) * sizeof *p);
  force = malloc((size_t)(row * (y + 1)) * sizeof *force);
  for (n = 0; n < 2; ++n) {
    hs_field_init(&list[n]);
    list[n].first = (void* const*)(n == 0 ? &p : &force);
    list[n].stride[0] = sizeof(double);
    list[n].stride[1] = row * (int64_t)sizeof(double);
    list[n].centring = HS_CENTRING_NODE;
  }
  hs_exchange_init(&how);
  how.strategy = argc > 1 ? argv[1] : NULL;
  check(hs_exchange_create(grid, list, 2, &how, &halo));
  hs_part_init(&positions);
  hs_part_init(&forces);
  positions.only = &first_field, forces.only = &second_field;
  positions.count = forces.count = 1;
  for (j = 0; j <= y; ++j)
    for (i = 0; i <= x; ++i) p[j * row + i] = initial((own.lo[0] + i) % nx, (own.lo[1] + j) % ny);
  for (n = 0; n < steps; ++n) {
    for (i = 0; i < row * (y + 1); ++i) force[i] = 0;
    for (j = 0; j < y; ++j)
      for (i = 0; i < x; ++i) {
        const double *low = p + j * row + i, *high = low + row;
        const double of_cell = floor(0.25 * ((low[0] + low[1]) + (high[0] + high[1])) / unit) * unit;
        double* at = force + j * row + i;
        at[0] += of_cell, at[1] += of_cell, at[row] += of_cell, at[row + 1] += of_cell;
      }
    check(hs_exchange_accumulate_part(halo, &forces, 0));
    for (j = 0; j < y; ++j)
      for (i = 0; i < x; ++i) p[j * row + i] = 0.5 * p[j * row + i] + 0.125 * force[j * row + i];
    check(hs_exchange_start_share(halo, &positions, 0));
    check(hs_exchange_finish(halo));
  }
  for (j = 0; j < y; ++j)
    for (i = 0; i < x; ++i) {
      uint64_t bits;
      memcpy(&bits, p + j * row + i, sizeof bits);
      sum += bits * (uint64_t)(2 * ((own.lo[1] + j) * nx + own.lo[0] + i) + 1);
    }
  MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%016llx\n", (unsigned long long)all);
  check(hs_exchange_free(halo));
  check(hs_grid_free(grid));
  free(p);
  free(force);
  MPI_Finalize();
  return 0;
}
