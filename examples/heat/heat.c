/* Heat in 2D, periodic, on a communicator of MPI_Cart_create, whose last dimension is x: mpiexec -n 4 ./heat_c */
#include <haloscope/exchange.h>
#include <stdio.h>
#include <stdlib.h>

static void check(hs_status status) {
  if (status == HS_OK) return;
  fprintf(stderr, "%s\n", hs_last_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

int main(int argc, char** argv) {
  int ranks[2] = {0, 0}, wrap[2] = {1, 1}, size, rank;
  MPI_Comm cart;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, ranks);
  MPI_Cart_create(MPI_COMM_WORLD, 2, ranks, wrap, 0, &cart);
  MPI_Comm_rank(cart, &rank);

  hs_grid_options split;
  hs_grid* grid;
  hs_box own;
  hs_grid_init(&split);
  split.dims = 2, split.split = HS_SPLIT_CARTESIAN;
  split.cells[0] = 64, split.axes[0] = 1; /* x */
  split.cells[1] = 96, split.axes[1] = 0;
  check(hs_grid_create(cart, &split, &grid));
  check(hs_grid_owned(grid, &own));

  const long nx = own.hi[0] - own.lo[0], ny = own.hi[1] - own.lo[1], row = nx + 2;
  double* u[2] = {calloc(row * (ny + 2), sizeof(double)), calloc(row * (ny + 2), sizeof(double))};
  void* first[2] = {u[0] + row + 1, u[1] + row + 1};
  hs_field field;
  hs_field_init(&field);
  field.first = first, field.stride[0] = sizeof(double), field.stride[1] = row * sizeof(double);
  field.low[0] = field.low[1] = field.high[0] = field.high[1] = 1;
  hs_exchange_options how;
  hs_exchange* halo;
  hs_exchange_init(&how);
  how.slots = 2, how.corners = 0;
  check(hs_exchange_create(grid, &field, 1, &how, &halo));
  for (long j = 1; j <= ny; ++j)
    for (long i = 1; i <= nx; ++i)
      u[0][j * row + i] = labs(own.lo[1] + j - 1 - 48) < 8 && labs(own.lo[0] + i - 1 - 32) < 8;
  for (int step = 0; step < 100; ++step) {
    const double* old = u[step % 2];
    double* new = u[(step + 1) % 2];
    check(hs_exchange_run(halo, step % 2));
    for (long j = 1; j <= ny; ++j)
      for (long i = j * row + 1; i <= j * row + nx; ++i)
        new[i] = old[i] + 0.2 * ((old[i - row] + old[i + row]) + (old[i - 1] + old[i + 1]) - 4.0 * old[i]);
  }
  double hottest = 0;
  for (long i = 0; i < row * ny; ++i) hottest = u[0][row + i] > hottest ? u[0][row + i] : hottest;
  MPI_Allreduce(MPI_IN_PLACE, &hottest, 1, MPI_DOUBLE, MPI_MAX, cart);
  if (rank == 0) printf("after 100 steps the hottest cell has %.15f\n", hottest);
  hs_exchange_free(halo);
  MPI_Finalize();
}
