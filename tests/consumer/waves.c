/* The program of waves.cpp in C: dimensions and layers that are known at run time. */
#include <haloscope/exchange.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { steps = 4 };
static const int64_t all[] = {18, 16, 20};

static int dims, layers;
static int64_t n[3], low[3], stride[3]; /* own cells, the first one, distances of points */

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

static void step(const double* u, double* v) {
  int64_t i, j, k, m;
  int d;
  for (k = 0; k < n[2]; ++k)
    for (j = 0; j < n[1]; ++j)
      for (i = 0; i < n[0]; ++i) {
        const int64_t p = i + j * stride[1] + k * stride[2];
        double total = 0.5 * v[p];
        for (m = 1; m <= layers; ++m) {
          double pairs = u[p - m] + u[p + m];
          for (d = 1; d < dims; ++d) pairs += u[p - m * stride[d]] + u[p + m * stride[d]];
          total += 0.125 / (double)(m * m) * pairs;
        }
        v[p] = total;
      }
}

static void run(const char* strategy) {
  hs_grid_options split;
  hs_exchange_options how;
  hs_grid* grid;
  hs_exchange* halo;
  hs_box own;
  hs_field field;
  double *memory[2], *u, *v, *other;
  int64_t points = 1, first = 0, i, j, k;
  uint64_t mine = 0, sum = 0;
  int rank, d, t;
  hs_grid_init(&split);
  split.dims = dims;
  hs_field_init(&field);
  for (d = 0; d < dims; ++d) {
    split.cells[d] = all[d], split.periodic[d] = d != 1;
    field.low[d] = field.high[d] = layers;
  }
  check(hs_grid_create(MPI_COMM_WORLD, &split, &grid));
  check(hs_grid_owned(grid, &own));
  for (d = 0; d < 3; ++d) {
    n[d] = own.hi[d] - own.lo[d], low[d] = own.lo[d], stride[d] = points;
    field.stride[d] = points * (int64_t)sizeof(double);
    first += field.low[d] * points;
    points *= n[d] + 2 * field.low[d];
  }
  for (t = 0; t < 2; ++t) {
    memory[t] = calloc((size_t)points, sizeof(double));
    for (k = 0; k < n[2]; ++k)
      for (j = 0; j < n[1]; ++j)
        for (i = 0; i < n[0]; ++i)
          memory[t][first + i + j * stride[1] + k * stride[2]] =
              (double)(((low[0] + i) * 7919 + (low[1] + j) * 104729 + (low[2] + k) * 15485863) % 1000003) / 1000003;
  }
  u = memory[0] + first, v = memory[1] + first;
  field.first = (void* const*)&u;
  hs_exchange_init(&how);
  how.strategy = strategy, how.corners = 0;
  check(hs_exchange_create(grid, &field, 1, &how, &halo));
  for (t = 0; t < steps; ++t) {
    check(hs_exchange_run_at(halo, 0, (void* const*)&u));
    step(u, v);
    other = u, u = v, v = other;
  }
  for (k = 0; k < n[2]; ++k)
    for (j = 0; j < n[1]; ++j)
      for (i = 0; i < n[0]; ++i) {
        const int64_t cell = ((low[2] + k) * (dims > 1 ? all[1] : 1) + low[1] + j) * all[0] + low[0] + i;
        uint64_t bits;
        memcpy(&bits, u + i + j * stride[1] + k * stride[2], sizeof bits);
        mine += bits * (uint64_t)(2 * cell + 1);
      }
  MPI_Reduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%016llx\n", (unsigned long long)sum);
  check(hs_exchange_free(halo));
  check(hs_grid_free(grid));
  free(memory[0]);
  free(memory[1]);
}

int main(int argc, char** argv) {
  static const int of_layers[] = {1, 2, 5, 8};
  int c;
  MPI_Init(&argc, &argv);
  for (dims = 1; dims <= 3; ++dims)
    for (c = 0; c < 4; ++c) {
      layers = of_layers[c];
      run(argc > 1 ? argv[1] : NULL);
    }
  MPI_Finalize();
  return 0;
}
