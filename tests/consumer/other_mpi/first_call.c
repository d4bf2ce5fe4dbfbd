/* Makes the first call of a program and prints its error. */
#include <haloscope/exchange.h>
#include <stdio.h>

int main(int argc, char** argv) {
  hs_grid_options options;
  hs_grid* grid = NULL;
  MPI_Init(&argc, &argv);
  hs_grid_init(&options);
  if (hs_grid_create(MPI_COMM_WORLD, &options, &grid) != HS_OK) fprintf(stderr, "%s\n", hs_last_error());
  MPI_Finalize();
  return 0;
}
