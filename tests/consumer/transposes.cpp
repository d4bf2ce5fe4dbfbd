// A code that filters a grid along whole lines: along x in blocks of whole rows, along y in blocks of whole columns,
// with redistributions in between. At the end one rank gathers the grid. Prints a checksum that does not depend on the
// number of ranks.
#include <mpi.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <haloscope/haloscope.hpp>
#include <string>
#include <vector>

namespace {

using View = haloscope::FieldView<double, 2>;
using Grid = haloscope::Grid<2>;

constexpr int steps = 10;
constexpr std::int64_t nx = 20, ny = 14;

double initial(std::int64_t i, std::int64_t j) {
  return static_cast<double>((i * 7919 + j * 104729) % 1000003) / 1000003;
}

template <class Visit>
void each_cell(const Grid& grid, Visit visit) {
  for (std::int64_t j = 0; j < grid.cells()[1]; ++j)
    for (std::int64_t i = 0; i < grid.cells()[0]; ++i) visit(i, j);
}

void filter_rows(const Grid& grid, View u) {
  each_cell(grid, [&](auto i, auto j) { u(i, j) = i == 0 ? u(i, j) : 0.25 * u(i, j) + 0.5 * u(i - 1, j); });
}

void filter_columns(const Grid& grid, View u) {
  each_cell(grid, [&](auto i, auto j) { u(i, j) = j == 0 ? u(i, j) : 0.25 * u(i, j) + 0.5 * u(i, j - 1); });
}

void run(const std::string& strategy) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string ranks = std::to_string(size);
  const Grid rows(MPI_COMM_WORLD, {.cells = {nx, ny}, .process_grid = "1x" + ranks});
  const Grid columns(MPI_COMM_WORLD, {.cells = {nx, ny}, .process_grid = ranks + "x1"});
  const Grid whole(MPI_COMM_WORLD, {.cells = {nx, ny}, .active_ranks = 1});
  haloscope::Field<double, 2> u(rows, {.halo = 1}), v(columns, {.halo = 0}), all(whole, {.halo = 0});
  auto forth = haloscope::make_redistribution(rows, columns, {u}, {v}, strategy);
  auto back = haloscope::make_redistribution(columns, rows, {v}, {u}, strategy);
  const std::int64_t first = rows.owned().lo[1];
  each_cell(rows, [&](auto i, auto j) { u[0](i, j) = initial(i, first + j); });
  for (int n = 0; n < steps; ++n) {
    filter_rows(rows, u[0]);
    forth.run();
    filter_columns(columns, v[0]);
    back.run();
  }
  haloscope::redistribute(rows, whole, {u}, {all});
  std::uint64_t sum = 0;
  each_cell(whole, [&](auto i, auto j) {
    sum += std::bit_cast<std::uint64_t>(all[0](i, j)) * static_cast<std::uint64_t>(2 * (j * nx + i) + 1);
  });
  if (whole.rank() == 0) std::printf("%016llx\n", static_cast<unsigned long long>(sum));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  run(argc > 1 ? argv[1] : "auto");
  MPI_Finalize();
}
