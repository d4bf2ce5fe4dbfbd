// Overlap: messages travel while the inner cells are computed, plane by plane, with a call for progress after each.
//   mpiexec -n 4 ./overlap
#include "heat3d.hpp"

namespace {

void simulate() {
  const haloscope::Grid<3> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = {true, true, true}});
  const haloscope::Field<double, 3> u(grid, {.halo = 1, .slots = 2});
  auto halo = make_exchange(grid, {u}, "ordered/p2p", {.corners = false});

  fill(grid, u[0]);
  const haloscope::Box inner = interior(grid, 1);
  const std::vector<haloscope::Box> rest = boundary(grid, 1);
  for (int step = 0; step < steps; ++step) {
    const Cells old = u[step % 2], now = u[(step + 1) % 2];
    halo.start(step % 2);  // messages are in flight ...
    for (auto k = inner.lo[2]; k < inner.hi[2]; ++k) {
      sweep({{inner.lo[0], inner.lo[1], k}, {inner.hi[0], inner.hi[1], k + 1}}, old, now);
      halo.progress();  // ... and the next dimension's messages follow as soon as one dimension's have arrived
    }
    halo.finish();  // now the halo is complete
    for (const haloscope::Box& box : rest) sweep(box, old, now);
  }
  print_bits(grid, {u[steps % 2]});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate();
  MPI_Finalize();
}
