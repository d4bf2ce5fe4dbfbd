#include <haloscope/haloscope.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    haloscope::Grid<2> grid{MPI_COMM_WORLD, {.cells = {512, 384}, .periodic = {true, true}}};
    haloscope::Field<double, 2> u{grid, {.halo = 1, .slots = 2}};
    auto halo = haloscope::make_exchange(grid, {u}, "ordered/persistent");
    auto sweep = [&](const haloscope::Box& b, auto in, auto out) {
      for (auto j = b.lo[1]; j < b.hi[1]; ++j)
        for (auto i = b.lo[0]; i < b.hi[0]; ++i)
          out(i, j) = 0.25 * (in(i - 1, j) + in(i + 1, j) + in(i, j - 1) + in(i, j + 1));
    };
    for (auto j = 0; j < grid.cells()[1]; ++j) u[0](0, j) = 1;
    for (int t = 0; t < 100; ++t) {
      halo.start(t % 2);
      sweep(haloscope::interior(grid, 1), u[t % 2], u[(t + 1) % 2]);
      halo.finish();
      for (const auto& b : haloscope::boundary(grid, 1)) sweep(b, u[t % 2], u[(t + 1) % 2]);
    }
  }
  MPI_Finalize();
}
