// Common parts of the examples: heat in a periodic box of 24 x 20 x 18 cells, and a checksum of all its bits.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <haloscope/haloscope.hpp>

using Cells = haloscope::FieldView<double, 3>;

constexpr std::array<std::int64_t, 3> cells{24, 20, 18};
constexpr int steps = 50;

/// Calls `work(i, j, k)` in each point of a box.
template <class Work>
void for_each(const haloscope::Box& box, const Work& work) {
  for (auto k = box.lo[2]; k < box.hi[2]; ++k)
    for (auto j = box.lo[1]; j < box.hi[1]; ++j)
      for (auto i = box.lo[0]; i < box.hi[0]; ++i) work(i, j, k);
}

/// Returns this rank's cells, in local coordinates.
inline haloscope::Box whole(const haloscope::Grid<3>& grid) { return {{0, 0, 0}, grid.cells()}; }

/// Sets the start values: one hot corner.
inline void fill(const haloscope::Grid<3>& grid, const Cells& u) {
  const auto [x, y, z] = grid.owned().lo;
  for_each(whole(grid), [&, x = x, y = y, z = z](auto i, auto j, auto k) { u(i, j, k) = x + i + y + j + z + k < 12; });
}

/// Computes one explicit step of du/dt = laplacian(u) in a point ...
HALOSCOPE_ON_BOTH_SIDES inline void update(const Cells& old, const Cells& now, std::int64_t i, std::int64_t j,
                                           std::int64_t k) {
  now(i, j, k) = old(i, j, k) + 0.1 * ((old(i - 1, j, k) + old(i + 1, j, k)) + (old(i, j - 1, k) + old(i, j + 1, k)) +
                                       (old(i, j, k - 1) + old(i, j, k + 1)) - 6.0 * old(i, j, k));
}

/// ... and in a box.
inline void sweep(const haloscope::Box& box, const Cells& old, const Cells& now) {
  for_each(box, [&](auto i, auto j, auto k) { update(old, now, i, j, k); });
}

/// Prints a checksum of the bits of all cells and their positions, equal on any number of ranks. Collective.
inline void print_bits(const haloscope::Grid<3>& grid, const std::vector<Cells>& fields) {
  std::uint64_t own = 0, all = 0;
  const auto [x, y, z] = grid.owned().lo;
  for (std::size_t f = 0; f < fields.size(); ++f)
    for_each(whole(grid), [&, x = x, y = y, z = z](auto i, auto j, auto k) {
      const std::uint64_t place = x + i + cells[0] * (y + j + cells[1] * (z + k + cells[2] * std::int64_t(f)));
      own += std::bit_cast<std::uint64_t>(fields[f](i, j, k)) * (2 * place + 1);
    });
  MPI_Reduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, 0, grid.comm());
  if (grid.rank() == 0) std::printf("bits %016llx\n", static_cast<unsigned long long>(all));
}
