/* The program of pencils.cpp in C: sides and dimensions by call, with ghost rows that the code has computed. */
#include <haloscope/exchange.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { fields = 4, steps = 10, nx = 12, ny = 10, nz = 8 };

static hs_exchange* halo;
static hs_box own;
static int64_t y, z, row, plane; /* own cells; distances of points */
static double* first[fields];    /* the first own cell of u, v, w, p */
static double* at(int f, int64_t i, int64_t j, int64_t k) { return first[f] + i + j * row + k * plane; }

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

static double initial(int64_t i, int64_t j, int64_t k, int field) {
  return (double)((i * 7919 + j * 104729 + k * 15485863 + field * 1299709) % 1000003) / 1000003;
}

/* Fills one side of the halos of some arrays in a dimension. */
static void exchange(const int32_t* only, int count, int dimension, int low, int high) {
  hs_part part;
  hs_part_init(&part);
  part.only = only, part.count = count, part.depth = 0, part.ghost_rows = 1;
  part.low[dimension] = low, part.high[dimension] = high;
  check(hs_exchange_run_part(halo, &part, 0));
}

static void fill(const int32_t* only, int count, int low, int high) {
  int64_t i, j, k;
  int n;
  for (n = 0; n < count; ++n)
    for (k = 0; k < z; ++k)
      for (j = 0; j < y; ++j) {
        *at(only[n], -1, j, k) = *at(only[n], nx - 1, j, k);
        *at(only[n], nx, j, k) = *at(only[n], 0, j, k);
      }
  exchange(only, count, 1, low, high);
  for (n = 0; n < count; ++n)
    for (j = -1; j <= y; ++j)
      for (i = -1; i <= nx; ++i) {
        if (own.lo[2] == 0) *at(only[n], i, j, -1) = *at(only[n], i, j, 0);
        if (own.hi[2] == nz) *at(only[n], i, j, z) = *at(only[n], i, j, z - 1);
      }
  exchange(only, count, 2, low, high);
}

static void step(void) {
  static const int32_t velocities[] = {0, 1, 2}, pressure[] = {3};
  int64_t i, j, k;
  fill(velocities, 3, 1, 0);
  for (k = 0; k < z; ++k)
    for (j = 0; j < y; ++j)
      for (i = 0; i < nx; ++i)
        *at(3, i, j, k) = 0.5 * *at(3, i, j, k) + 0.125 * ((*at(0, i - 1, j - 1, k) + *at(1, i - 1, j - 1, k - 1)) +
                                                           (*at(2, i, j - 1, k - 1) + *at(0, i - 1, j, k - 1)));
  fill(pressure, 1, 0, 1);
  for (k = 0; k < z; ++k)
    for (j = 0; j < y; ++j)
      for (i = 0; i < nx; ++i) {
        const double corner = *at(3, i + 1, j + 1, k + 1);
        *at(0, i, j, k) = 0.5 * *at(0, i, j, k) + 0.25 * (corner + *at(3, i + 1, j + 1, k));
        *at(1, i, j, k) = 0.5 * *at(1, i, j, k) + 0.25 * (*at(3, i + 1, j, k + 1) + corner);
        *at(2, i, j, k) = 0.5 * *at(2, i, j, k) + 0.25 * (*at(3, i, j + 1, k + 1) + *at(3, i, j, k + 1));
      }
}

int main(int argc, char** argv) {
  hs_grid_options split;
  hs_exchange_options how;
  hs_grid* grid;
  hs_field list[fields];
  char process_grid[32];
  double* memory[fields];
  uint64_t sum = 0, all = 0;
  int64_t i, j, k;
  int ranks[2] = {0, 0}, size, rank, f, n;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, ranks);
  sprintf(process_grid, "1x%dx%d", ranks[0], ranks[1]);
  hs_grid_init(&split);
  split.cells[0] = nx, split.cells[1] = ny, split.cells[2] = nz;
  split.periodic[0] = split.periodic[1] = 1;
  split.process_grid = process_grid;
  check(hs_grid_create(MPI_COMM_WORLD, &split, &grid));
  check(hs_grid_owned(grid, &own));
  y = own.hi[1] - own.lo[1], z = own.hi[2] - own.lo[2], row = nx + 2, plane = row * (y + 2);
  for (f = 0; f < fields; ++f) {
    memory[f] = calloc((size_t)(plane * (z + 2)), sizeof(double));
    first[f] = memory[f] + 1 + row + plane;
    for (k = 0; k < z; ++k)
      for (j = 0; j < y; ++j)
        for (i = 0; i < nx; ++i) *at(f, i, j, k) = initial(i, own.lo[1] + j, own.lo[2] + k, f);
    hs_field_init(&list[f]);
    list[f].first = (void* const*)&first[f];
    list[f].stride[0] = sizeof(double);
    list[f].stride[1] = row * (int64_t)sizeof(double), list[f].stride[2] = plane * (int64_t)sizeof(double);
    for (n = 0; n < 3; ++n) list[f].low[n] = list[f].high[n] = 1;
  }
  hs_exchange_init(&how);
  how.strategy = argc > 1 ? argv[1] : NULL;
  check(hs_exchange_create(grid, list, fields, &how, &halo));
  for (n = 0; n < steps; ++n) step();
  for (f = 0; f < fields; ++f)
    for (k = 0; k < z; ++k)
      for (j = 0; j < y; ++j)
        for (i = 0; i < nx; ++i) {
          uint64_t bits;
          memcpy(&bits, at(f, i, j, k), sizeof bits);
          sum += bits * (uint64_t)(2 * (((own.lo[2] + k) * ny + own.lo[1] + j) * nx + i) + 1);
        }
  MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%016llx\n", (unsigned long long)all);
  check(hs_exchange_free(halo));
  check(hs_grid_free(grid));
  for (f = 0; f < fields; ++f) free(memory[f]);
  MPI_Finalize();
  return 0;
}
