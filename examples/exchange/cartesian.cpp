// A communicator of MPI_Cart_create over (z, y, x), whose last dimension runs fastest, and C arrays u[z][y][x] on it.
//   mpiexec -n 4 ./cartesian
#include "heat3d.hpp"

namespace {

void simulate() {
  int size = 0, ranks[3] = {0, 0, 0};
  const int wrap[3] = {1, 1, 1};
  MPI_Comm cart;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 3, ranks);
  MPI_Cart_create(MPI_COMM_WORLD, 3, ranks, wrap, 0, &cart);
  const auto grid = haloscope::Grid<3>::of_cartesian(cart, cells, {2, 1, 0});  // x is dimension 2 of cart

  const auto [nx, ny, nz] = grid.cells();
  const std::int64_t row = nx + 2, plane = row * (ny + 2);
  std::vector<double> memory[2];
  Cells u[2];
  for (int slot = 0; slot < 2; ++slot) {
    memory[slot].resize(plane * (nz + 2));
    u[slot] = {memory[slot].data() + plane + row + 1, row, plane};
  }
  const auto field = haloscope::view<double, 3>(grid, {u[0].origin, u[1].origin}, row, plane, 1);
  auto halo = make_exchange(grid, {field}, "direct/persistent", {.corners = false});

  fill(grid, u[0]);
  for (int step = 0; step < steps; ++step) {
    halo.exchange(step % 2);
    sweep(whole(grid), u[step % 2], u[(step + 1) % 2]);
  }
  print_bits(grid, {u[steps % 2]});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate();
  MPI_Finalize();
}
