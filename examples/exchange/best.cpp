// The exchange that a profile of the machine predicts fastest. `haloscope calibrate -o machine.json` makes a profile.
//   mpiexec -n 4 ./best machine.json
#include "heat3d.hpp"

namespace {

void simulate(const char* profile) {
  const haloscope::Grid<3> grid(MPI_COMM_WORLD, {.cells = cells, .periodic = {true, true, true}});
  // The loop below exchanges in every step (depth 1) and takes about 2 ns a cell. See ../stepper for whole steps.
  const haloscope::Best best = haloscope::best<double>(grid, profile, {.seconds_per_cell = 2e-9, .depths = {1}});
  const haloscope::Field<double, 3> u(grid, {.halo = best.halo, .slots = 2, .memory = best.memory});
  auto halo = make_exchange(grid, {u}, best.choice.strategy, {.corners = false});

  fill(grid, u[0]);
  for (int step = 0; step < steps; ++step) {
    halo.exchange(step % 2);
    sweep(whole(grid), u[step % 2], u[(step + 1) % 2]);
  }
  print_bits(grid, {u[steps % 2]});
  if (grid.rank() == 0)
    std::printf("%s: predicted %.3g s a step: %s\n", halo.report().c_str(), best.time_s, best.reason.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: best PROFILE\n"), 2;
  MPI_Init(&argc, &argv);
  simulate(argv[1]);
  MPI_Finalize();
}
