// Every template of the C++ interface, so that a compiler prints its warnings.
#include <haloscope/haloscope.hpp>

template <int D>
void use() {
  haloscope::GridOptions<D> options;
  options.cells.fill(16);
  const haloscope::Grid<D> grid{MPI_COMM_WORLD, options};
  const auto cartesian = haloscope::Grid<D>::of_cartesian(MPI_COMM_WORLD, options.cells);
  const auto boxes = haloscope::Grid<D>::of_boxes(MPI_COMM_WORLD, options.cells, options.periodic, {});
  const haloscope::Field<double, D> u{cartesian, {}};
  const haloscope::Field<std::complex<float>, D> z{boxes, {}};
  const std::vector<double*> first;
  haloscope::make_exchange(grid, {u, z, haloscope::view(grid, first, 1, 1, 1)}).exchange();
  const auto best = haloscope::best<double>(grid, "machine.json");
  haloscope::best(grid, u, best.profile);
  haloscope::Stepper step{grid, {u}, best.choice, [](const haloscope::SweepArgs& a) {
                            const auto& box = a.region;
                            const auto from = a.read<double, D>(0);
                            const auto to = a.write<double, D>(0);
                            if constexpr (D == 2) to(box.lo[0], box.lo[1]) = from(box.lo[0], box.lo[1]);
                          }};
  step.run(haloscope::boundary(grid, 1).empty() ? 1 : 2);
}
template void use<2>();
template void use<3>();
