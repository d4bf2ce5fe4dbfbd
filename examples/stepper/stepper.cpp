// Heat in a plate: a user's grid, field and sweep, stepped by a choice. A machine profile provides the choice that is
// predicted fastest here.
//   mpiexec -n 4 ./stepper [machine.json]
#include <cstdio>
#include <haloscope/haloscope.hpp>

namespace {

/// Computes one explicit step of du/dt = laplacian(u) on a part of the cells.
void diffuse(const haloscope::SweepArgs& args) {
  const auto old = args.read<double, 2>(0);
  const auto now = args.write<double, 2>(0);
  for (auto j = args.region.lo[1]; j < args.region.hi[1]; ++j)
    for (auto i = args.region.lo[0]; i < args.region.hi[0]; ++i)
      now(i, j) = old(i, j) + 0.2 * (old(i - 1, j) + old(i + 1, j) + old(i, j - 1) + old(i, j + 1) - 4 * old(i, j));
}

void simulate(const char* profile) {
  const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = {192, 256}, .periodic = {true, false}});
  haloscope::Best best;  // or a choice known to be good
  best.choice.schedule = "split";
  best.choice.depth = best.halo = 4;
  best.choice.substeps = haloscope::Substeps::shrink;
  if (profile) best = haloscope::best<double>(grid, profile);

  haloscope::Field<double, 2> u(grid,
                                {.halo = best.halo, .slots = 2, .memory = best.memory});  // zeros: cold edges in y
  const auto [nx, ny, nz] = grid.cells();
  for (std::int64_t j = 0; j < ny; ++j)
    for (std::int64_t i = 0; i < nx; ++i) u[0](i, j) = grid.owned().lo[1] + j < 64 ? 1 : 0;  // a hot strip

  haloscope::Stepper step(grid, {u}, best.choice, diffuse);
  const int slot = step.run(1000);

  double own = 0, heat = 0;
  for (std::int64_t j = 0; j < ny; ++j)
    for (std::int64_t i = 0; i < nx; ++i) own += u[slot](i, j);
  MPI_Reduce(&own, &heat, 1, MPI_DOUBLE, MPI_SUM, 0, grid.comm());
  if (grid.rank() == 0) std::printf("heat after %d steps: %.6f\n%s\n", int(step.time()), heat, step.report().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate(argc > 1 ? argv[1] : nullptr);
  MPI_Finalize();
}
