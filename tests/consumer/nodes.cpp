// A code of finite elements: cells add forces to their nodes, accumulate() adds up forces of all ranks, and each rank
// moves the nodes at which its cells begin, which share() gives to the other holders. Arrays have no ghost layers.
// Prints a checksum that does not depend on the number of ranks.
#include <mpi.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <haloscope/haloscope.hpp>

namespace {

using View = haloscope::FieldView<double, 2>;

constexpr int steps = 10;
constexpr std::int64_t nx = 20, ny = 14;
constexpr double unit = 1.0 / (1 << 20);  // of forces: sums do not depend on their order

double initial(std::int64_t i, std::int64_t j) {
  return static_cast<double>((i * 7919 + j * 104729) % 1000003) / 1000003;
}

template <class Visit>
void each_cell(const haloscope::Grid<2>& grid, Visit visit) {
  for (std::int64_t j = 0; j < grid.cells()[1]; ++j)
    for (std::int64_t i = 0; i < grid.cells()[0]; ++i) visit(i, j);
}

void step(const haloscope::Grid<2>& grid, View p, View force, haloscope::Exchange& halo) {
  for (std::int64_t j = 0; j <= grid.cells()[1]; ++j)
    for (std::int64_t i = 0; i <= grid.cells()[0]; ++i) force(i, j) = 0;
  each_cell(grid, [&](auto i, auto j) {
    const double mean = 0.25 * ((p(i, j) + p(i + 1, j)) + (p(i, j + 1) + p(i + 1, j + 1)));
    const double of_cell = std::floor(mean / unit) * unit;
    for (const int y : {0, 1})
      for (const int x : {0, 1}) force(i + x, j + y) += of_cell;
  });
  halo.accumulate({.only = {1}});
  each_cell(grid, [&](auto i, auto j) { p(i, j) = 0.5 * p(i, j) + 0.125 * force(i, j); });
  halo.share({.only = {0}});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    using haloscope::Centring;
    const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = {nx, ny}, .periodic = {true, true}});
    const haloscope::Field<double, 2> position(grid, {.halo = 0, .centring = Centring::node}),
        force(grid, {.halo = 0, .centring = Centring::node});
    auto halo = haloscope::make_exchange(grid, {position, force}, argc > 1 ? argv[1] : "auto");
    const auto first = grid.owned().lo;
    for (std::int64_t j = 0; j <= grid.cells()[1]; ++j)
      for (std::int64_t i = 0; i <= grid.cells()[0]; ++i)
        position[0](i, j) = initial((first[0] + i) % nx, (first[1] + j) % ny);
    for (int n = 0; n < steps; ++n) step(grid, position[0], force[0], halo);
    std::uint64_t sum = 0, all = 0;
    each_cell(grid, [&](auto i, auto j) {
      sum += std::bit_cast<std::uint64_t>(position[0](i, j)) *
             static_cast<std::uint64_t>(2 * ((first[1] + j) * nx + first[0] + i) + 1);
    });
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (grid.rank() == 0) std::printf("%016llx\n", static_cast<unsigned long long>(all));
  }
  MPI_Finalize();
}
