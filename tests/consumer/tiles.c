/* The program of tiles.cpp in C: several tiles a rank, of sizes and numbers that are known at run time. */
#include <haloscope/exchange.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { steps = 4, most_tiles = 64, nx = 37, ny = 26 };

typedef struct tile {
  int64_t x, y, columns, rows;
  double *u, *f, *u_memory, *f_memory; /* first own points */
} tile;

static tile tiles[most_tiles];
static int count;

static int64_t row_of_u(const tile* t) { return t->columns + 4; }
static int64_t row_of_f(const tile* t) { return t->columns + 3; }

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

static void make_tiles(int64_t columns, int64_t rows) {
  int64_t x, y, i, j;
  int rank, ranks, n = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  count = 0;
  for (y = 0; y < ny; y += rows)
    for (x = 0; x < nx; x += columns, ++n)
      if ((5 * n + n / 4) % ranks == rank) {
        tile* t = &tiles[count++];
        t->x = x, t->y = y;
        t->columns = x + columns < nx ? columns : nx - x;
        t->rows = y + rows < ny ? rows : ny - y;
        t->u_memory = calloc((size_t)(row_of_u(t) * (t->rows + 4)), sizeof(double));
        t->f_memory = calloc((size_t)(row_of_f(t) * (t->rows + 2)), sizeof(double));
        t->u = t->u_memory + 2 + 2 * row_of_u(t);
        t->f = t->f_memory + 1 + row_of_f(t);
        for (j = 0; j < t->rows; ++j)
          for (i = 0; i < t->columns; ++i)
            t->u[i + j * row_of_u(t)] = (double)(((x + i) * 7919 + (y + j) * 104729) % 1000003) / 1000003;
      }
}

static void find_fluxes(const tile* t) {
  int64_t i, j;
  for (j = 0; j < t->rows; ++j)
    for (i = 0; i <= t->columns; ++i) {
      const double* u = t->u + i + j * row_of_u(t);
      t->f[i + j * row_of_f(t)] = (u[-1] - u[0]) + 0.25 * (u[-2] - u[1]);
    }
}

static void advance(const tile* t) {
  const int64_t row = row_of_f(t);
  int64_t i, j;
  for (j = 0; j < t->rows; ++j)
    for (i = 0; i < t->columns; ++i) {
      const double* f = t->f + i + j * row;
      t->u[i + j * row_of_u(t)] += 0.1 * (f[0] - f[1]) + 0.05 * (f[-1 - row] - f[2 + row]);
    }
}

static void set_field(hs_field* field, double** first, int64_t row, int layers, int centring) {
  hs_field_init(field);
  field->first = (void* const*)first;
  field->stride[0] = sizeof(double);
  field->stride[1] = row * (int64_t)sizeof(double);
  field->low[0] = field->low[1] = field->high[0] = field->high[1] = layers;
  field->centring = centring;
}

static void run(int64_t columns, int64_t rows, const char* strategy) {
  static const int32_t cells = 0, faces = 1;
  hs_grid_options split;
  hs_exchange_options how;
  hs_part of_cells, of_faces;
  hs_grid* grid;
  hs_exchange* halo;
  hs_box own[most_tiles];
  hs_field fields[2 * most_tiles], of_u[most_tiles];
  tile none = {0, 0, 0, 0, NULL, NULL, NULL, NULL};
  uint64_t mine = 0, sum = 0;
  double norm;
  int64_t i, j;
  int rank, n, step;
  make_tiles(columns, rows);
  memset(own, 0, sizeof own);
  for (n = 0; n < count; ++n) {
    own[n].lo[0] = tiles[n].x, own[n].hi[0] = tiles[n].x + tiles[n].columns;
    own[n].lo[1] = tiles[n].y, own[n].hi[1] = tiles[n].y + tiles[n].rows;
  }
  for (n = 0; n < (count > 0 ? count : 1); ++n) { /* without tiles: the fields without points */
    tile* t = count > 0 ? &tiles[n] : &none;
    set_field(&fields[2 * n], &t->u, row_of_u(t), 2, HS_CENTRING_CELL);
    of_u[n] = fields[2 * n];
    set_field(&fields[2 * n + 1], &t->f, row_of_f(t), 1, HS_CENTRING_FACE_X);
  }
  hs_grid_init(&split);
  split.dims = 2;
  split.cells[0] = nx, split.cells[1] = ny;
  split.periodic[0] = 1;
  split.split = HS_SPLIT_BOXES;
  split.blocks = own, split.block_count = count;
  check(hs_grid_create(MPI_COMM_WORLD, &split, &grid));
  hs_exchange_init(&how);
  how.strategy = strategy;
  check(hs_exchange_create(grid, fields, 2 * (count > 0 ? count : 1), &how, &halo));
  hs_part_init(&of_cells);
  hs_part_init(&of_faces);
  of_cells.only = &cells, of_faces.only = &faces;
  of_cells.count = of_faces.count = 1;
  for (step = 0; step < steps; ++step) {
    check(hs_exchange_run_part(halo, &of_cells, 0));
    for (n = 0; n < count; ++n) find_fluxes(&tiles[n]);
    check(hs_exchange_run_part(halo, &of_faces, 0));
    for (n = 0; n < count; ++n) advance(&tiles[n]);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check(hs_grid_norm(grid, of_u, &norm));
  if (rank == 0) memcpy(&mine, &norm, sizeof mine);
  for (n = 0; n < count; ++n)
    for (j = 0; j < tiles[n].rows; ++j)
      for (i = 0; i < tiles[n].columns; ++i) {
        uint64_t bits;
        memcpy(&bits, &tiles[n].u[i + j * row_of_u(&tiles[n])], sizeof bits);
        mine += bits * (uint64_t)(2 * ((tiles[n].y + j) * nx + tiles[n].x + i) + 1);
      }
  MPI_Reduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%016llx\n", (unsigned long long)sum);
  check(hs_exchange_free(halo));
  check(hs_grid_free(grid));
  for (n = 0; n < count; ++n) {
    free(tiles[n].u_memory);
    free(tiles[n].f_memory);
  }
}

int main(int argc, char** argv) {
  const char* strategy = argc > 1 ? argv[1] : NULL;
  MPI_Init(&argc, &argv);
  run(10, 9, strategy);
  run(37, 26, strategy);
  run(40, 5, strategy);
  MPI_Finalize();
  return 0;
}
