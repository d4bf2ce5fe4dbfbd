// Periodic grids of two dimensions, their cells, and averages of them.
#pragma once

#include <vector>

#include "each_point.hpp"
#include "haloscope/extend/app.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/stepper.hpp"

namespace haloscope::test {

/// A grid on all ranks.
inline Grid<2> torus(std::int64_t n = 24) {
  return Grid<2>{MPI_COMM_WORLD, {.cells = {n, n + 3}, .periodic = {true, true}}};
}
inline Grid<2> small_torus(MPI_Comm comm) { return {comm, {.cells = {10, 12}, .periodic = {true, true}}}; }

/// Calls visit(i, j) for this rank's cells and these layers around them.
template <class Visit>
void each_cell(const Grid<2>& grid, int layers, Visit visit) {
  for_points(grown({{0, 0, 0}, grid.cells()}, {layers, layers, 0}, {layers, layers, 0}), visit);
}

/// True for this rank's cells.
inline bool is_own(const Grid<2>& grid, std::int64_t i, std::int64_t j) {
  return Box{{0, 0, 0}, grid.cells()}.contains(Index{i, j, 0});
}

/// Sets this rank's cells to random values, the same on any number of ranks, other ones for each `quantity`.
inline void fill_at_random(const Grid<2>& grid, const FieldView<double, 2>& u, int quantity = 0) {
  const Index first = grid.owned().lo;
  each_cell(grid, 0, [&](auto i, auto j) {
    u(i, j) = random_value(3, quantity, grid.layout().grid(), {first[0] + i, first[1] + j, 0});
  });
}

/// The values of this rank's cells.
inline std::vector<double> own_values(const Grid<2>& grid, const FieldView<double, 2>& u) {
  std::vector<double> values;
  each_cell(grid, 0, [&](auto i, auto j) { values.push_back(u(i, j)); });
  return values;
}

/// Sets points of a field to the averages of their neighbours in another one, or in the slot before.
inline void average_neighbours(const SweepArgs& args, int from = 0, int to = 0) {
  const auto in = args.read<double, 2>(from);
  const auto out = args.write<double, 2>(to);
  for_points(args.region,
             [&](auto i, auto j) { out(i, j) = 0.25 * (in(i - 1, j) + in(i + 1, j) + in(i, j - 1) + in(i, j + 1)); });
}

}  // namespace haloscope::test
