// Heat in 2D on a periodic grid: mpiexec -n 4 ./heat_x. The halo is filled while the interior is computed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <haloscope/haloscope.hpp>

namespace {

using Heat = haloscope::FieldView<double, 2>;

void sweep(const haloscope::Box& box, const Heat& old, const Heat& now) {
  for (auto j = box.lo[1]; j < box.hi[1]; ++j)
    for (auto i = box.lo[0]; i < box.hi[0]; ++i)
      now(i, j) =
          old(i, j) + 0.2 * ((old(i, j - 1) + old(i, j + 1)) + (old(i - 1, j) + old(i + 1, j)) - 4.0 * old(i, j));
}

void simulate() {
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = {64, 96}, .periodic = {true, true}});
  const haloscope::Field<double, 2> u(grid, {.halo = 1, .slots = 2});
  auto halo = haloscope::make_exchange(grid, {u}, "auto", {.corners = false});

  const auto [nx, ny, nz] = grid.cells();
  const auto [x, y, z] = grid.owned().lo;
  for (std::int64_t j = 0; j < ny; ++j)
    for (std::int64_t i = 0; i < nx; ++i) u[0](i, j) = std::abs(y + j - 48) < 8 && std::abs(x + i - 32) < 8;
  for (int step = 0; step < 100; ++step) {
    const Heat old = u[step % 2], now = u[(step + 1) % 2];
    halo.start(step % 2);
    sweep(interior(grid, 1), old, now);
    halo.finish();
    for (const haloscope::Box& box : boundary(grid, 1)) sweep(box, old, now);
  }

  double own = 0, hottest = 0;
  for (std::int64_t j = 0; j < ny; ++j)
    for (std::int64_t i = 0; i < nx; ++i) own = std::max(own, u[0](i, j));
  MPI_Reduce(&own, &hottest, 1, MPI_DOUBLE, MPI_MAX, 0, grid.comm());
  if (grid.rank() == 0) std::printf("after 100 steps the hottest cell has %.15f\n", hottest);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate();
  MPI_Finalize();
}
