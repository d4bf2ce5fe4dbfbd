// Shared memory: ranks of a node write directly into each other's halos; ranks of different nodes send messages.
//   mpiexec -n 4 ./shared
#include "heat3d.hpp"

namespace {

void simulate() {
  const haloscope::Grid<3> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = {true, true, true}});
  const haloscope::Field<double, 3> u(grid, {.halo = 1, .slots = 2, .memory = haloscope::MemoryKind::shared});
  auto halo = make_exchange(grid, {u}, "direct:merged/shared+p2p", {.corners = false});

  fill(grid, u[0]);
  for (int step = 0; step < steps; ++step) {
    halo.exchange(step % 2);
    sweep(whole(grid), u[step % 2], u[(step + 1) % 2]);
  }
  print_bits(grid, {u[steps % 2]});
  if (grid.rank() == 0) std::printf("%s\n", halo.report().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate();
  MPI_Finalize();
}
