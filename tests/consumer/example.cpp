#include <cstdio>
#include <haloscope/haloscope.hpp>
#include <memory>

// An object that lives until the program ends, after MPI_Finalize, as in many codes.
std::unique_ptr<haloscope::Exchange> late;
std::unique_ptr<haloscope::Stepper> late_stepper;

template <class Call>
bool refused(Call call) {
  try {
    call();
  } catch (const haloscope::UsageError&) {
    return true;
  }
  return false;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  haloscope::Grid<2> plane(MPI_COMM_WORLD, {.cells = {16, 16}});
  haloscope::Field<double, 2> v(plane, {.halo = 1, .slots = 2});
  for (const char* strategy : {"ordered/rma-lockall", "direct/shared:packed+p2p", "ordered/p2p"}) {
    late = std::make_unique<haloscope::Exchange>(haloscope::make_exchange<2>(plane, {v}, strategy));
    late->exchange();
  }
  late_stepper = std::make_unique<haloscope::Stepper>(plane, std::vector<haloscope::FieldRef>{v}, haloscope::Choice{},
                                                      [](const haloscope::SweepArgs&) {});
  {
    haloscope::Grid<3> grid(MPI_COMM_WORLD, {.cells = {64, 64, 64}, .periodic = {true, true, true}});
    haloscope::Field<double, 3> u(grid, {.halo = 1, .slots = 2});
    haloscope::Exchange halo = haloscope::make_exchange<3>(grid, {u}, "ordered/persistent");
    const auto [nx, ny, nz] = grid.cells();
    for (int k = 0; k < nz; ++k)
      for (int j = 0; j < ny; ++j)
        for (int i = 0; i < nx; ++i) u[0](i, j, k) = double(grid.owned().lo[0] + i);  // the global x of the cell
    const auto sweep = [&](const haloscope::Box& box, int from, int to) {
      for (auto k = box.lo[2]; k < box.hi[2]; ++k)
        for (auto j = box.lo[1]; j < box.hi[1]; ++j)
          for (auto i = box.lo[0]; i < box.hi[0]; ++i) u[to](i, j, k) = u[from](i - 1, j, k);  // shift by one cell in x
    };
    for (int t = 0; t < 10; ++t) {
      halo.start(t % 2);
      sweep(haloscope::interior(grid, 1), t % 2, (t + 1) % 2);
      halo.finish();
      for (const auto& box : haloscope::boundary(grid, 1)) sweep(box, t % 2, (t + 1) % 2);
    }
    const auto expected = double((grid.owned().lo[0] + 64 - 10) % 64);
    std::printf("rank %d: %s\n", grid.rank(), u[0](0, 0, 0) == expected ? "right" : "wrong");
  }
  MPI_Finalize();
  const bool named = refused([] { late->exchange(); }) && refused([] { late->progress(); }) &&
                     refused([] { late->accumulate(); }) && refused([] { late_stepper->run(1); }) && refused([] {
                       haloscope::Grid<2>(MPI_COMM_WORLD, {.cells = {16, 16}});
                     });
  return named ? 0 : 1;
}
