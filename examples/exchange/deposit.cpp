// Particles deposited on a grid: each contributes an eighth of its mass to the eight cells around it, some of which
// belong to a neighbour. The reverse exchange adds the values in halos to the cells that they belong to.
//   mpiexec -n 4 ./deposit
#include "heat3d.hpp"

namespace {

/// Deposits one particle at the upper corner of each cell of this rank.
void deposit(const haloscope::Grid<3>& grid, const Cells& rho) {
  const auto [x, y, z] = grid.owned().lo;
  for_each(whole(grid), [&, x = x, y = y, z = z](auto i, auto j, auto k) {
    const double mass = 1.0 + (x + i + 2 * (y + j) + 3 * (z + k)) % 4;
    for (int corner = 0; corner < 8; ++corner)
      rho(i + (corner & 1), j + (corner >> 1 & 1), k + (corner >> 2)) += mass / 8;
  });
}

void simulate() {
  const haloscope::Grid<3> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = {true, true, true}});
  const haloscope::Field<double, 3> rho(grid, {.name = "density"});
  auto halo = haloscope::make_exchange(grid, {rho}, "auto");
  deposit(grid, rho[0]);  // into own cells and halo
  halo.accumulate();      // or start_accumulate(), progress(), finish()
  print_bits(grid, {rho[0]});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate();
  MPI_Finalize();
}
