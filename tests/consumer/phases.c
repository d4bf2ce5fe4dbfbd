/* The program of phases.cpp in C: seven exchanges a step of other arrays and depths, by one exchange. */
#include <haloscope/exchange.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { fields = 15, steps = 10, phases = 7, room = 2, nx = 30, ny = 22 };
static const int32_t centring[fields] = {HS_CENTRING_CELL,   HS_CENTRING_CELL,   HS_CENTRING_CELL,  HS_CENTRING_CELL,
                                         HS_CENTRING_CELL,   HS_CENTRING_CELL,   HS_CENTRING_CELL,  HS_CENTRING_NODE,
                                         HS_CENTRING_NODE,   HS_CENTRING_NODE,   HS_CENTRING_NODE,  HS_CENTRING_FACE_X,
                                         HS_CENTRING_FACE_X, HS_CENTRING_FACE_Y, HS_CENTRING_FACE_Y};
static const struct {
  int32_t only[6], count, depth;
} phase[phases] = {{{0, 2, 4, 7, 9, 0}, 5, 1},   {{5, 0, 0, 0, 0, 0}, 1, 1},    {{4, 0, 0, 0, 0, 0}, 1, 1},
                   {{0, 1, 2, 3, 11, 13}, 6, 2}, {{1, 3, 8, 10, 12, 14}, 6, 2}, {{0, 2, 4, 5, 6, 0}, 5, 2},
                   {{8, 10, 0, 0, 0, 0}, 2, 1}};

typedef struct array {
  double* memory;
  double* first; /* the first owned point */
  int64_t row, x, y;
} array;

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

static double initial(int64_t i, int64_t j, int field) {
  return (double)((i * 7919 + j * 104729 + field * 1299709) % 1000003) / 1000003;
}

static void smooth(const array* a, int64_t d, double* copy) {
  int64_t i, j;
  for (j = 0; j < a->y; ++j)
    for (i = 0; i < a->x; ++i) {
      const double* u = a->first + j * a->row + i;
      copy[j * a->x + i] = 0.5 * u[0] + 0.125 * ((u[-d] + u[d]) + (u[-d * a->row] + u[d * a->row]));
    }
  for (j = 0; j < a->y; ++j) memcpy(a->first + j * a->row, copy + j * a->x, (size_t)a->x * sizeof *copy);
}

int main(int argc, char** argv) {
  hs_grid_options split;
  hs_exchange_options how;
  hs_grid* grid;
  hs_exchange* halo;
  hs_field list[fields];
  hs_part part;
  hs_box own;
  array arrays[fields];
  double* copy;
  uint64_t sum = 0, all = 0;
  int64_t i, j;
  int f, p, step, rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  hs_grid_init(&split);
  split.dims = 2;
  split.cells[0] = nx, split.cells[1] = ny;
  split.periodic[0] = split.periodic[1] = 1;
  check(hs_grid_create(MPI_COMM_WORLD, &split, &grid));
  check(hs_grid_owned(grid, &own));
  for (f = 0; f < fields; ++f) {
    const int32_t c = centring[f];
    array* a = &arrays[f];
    a->x = own.hi[0] - own.lo[0] + (c == HS_CENTRING_NODE || c == HS_CENTRING_FACE_X);
    a->y = own.hi[1] - own.lo[1] + (c == HS_CENTRING_NODE || c == HS_CENTRING_FACE_Y);
    a->row = a->x + 2 * room;
    a->memory = calloc((size_t)(a->row * (a->y + 2 * room)), sizeof *a->memory);
    a->first = a->memory + room * a->row + room;
    for (j = 0; j < a->y; ++j)
      for (i = 0; i < a->x; ++i) a->first[j * a->row + i] = initial((own.lo[0] + i) % nx, (own.lo[1] + j) % ny, f);
    hs_field_init(&list[f]);
    list[f].first = (void* const*)&a->first;
    list[f].stride[0] = sizeof(double), list[f].stride[1] = a->row * (int64_t)sizeof(double);
    list[f].centring = c;
    list[f].low[0] = list[f].low[1] = list[f].high[0] = list[f].high[1] = room;
  }
  hs_exchange_init(&how);
  how.strategy = argc > 1 ? argv[1] : NULL;
  check(hs_exchange_create(grid, list, fields, &how, &halo));
  copy = malloc((nx + 1) * (ny + 1) * sizeof *copy);
  hs_part_init(&part);
  for (step = 0; step < steps; ++step)
    for (p = 0; p < phases; ++p) {
      part.only = phase[p].only, part.count = phase[p].count, part.depth = phase[p].depth;
      check(hs_exchange_run_part(halo, &part, 0));
      for (f = 0; f < phase[p].count; ++f) smooth(&arrays[phase[p].only[f]], phase[p].depth, copy);
    }
  for (f = 0; f < fields; ++f)
    for (j = 0; j < own.hi[1] - own.lo[1]; ++j)
      for (i = 0; i < own.hi[0] - own.lo[0]; ++i) {
        uint64_t bits;
        memcpy(&bits, arrays[f].first + j * arrays[f].row + i, sizeof bits);
        sum += bits * (uint64_t)(2 * ((own.lo[1] + j) * nx + own.lo[0] + i) + 1);
      }
  MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%016llx\n", (unsigned long long)all);
  check(hs_exchange_free(halo));
  check(hs_grid_free(grid));
  for (f = 0; f < fields; ++f) free(arrays[f].memory);
  free(copy);
  MPI_Finalize();
  return 0;
}
