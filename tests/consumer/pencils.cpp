// A code that splits its grid into pencils along x, fills the periodic ghost layers of x and the walls of z itself, and
// exchanges one side of one dimension by call. Messages carry the ghost rows that it has computed. Prints a checksum
// that does not depend on the number of ranks.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <haloscope/haloscope.hpp>
#include <vector>

namespace {

using haloscope::Widths;
using View = haloscope::FieldView<double, 3>;

constexpr int steps = 10;
constexpr std::int64_t nx = 12, ny = 10, nz = 8;

double initial(std::int64_t i, std::int64_t j, std::int64_t k, int field) {
  return static_cast<double>((i * 7919 + j * 104729 + k * 15485863 + field * 1299709) % 1000003) / 1000003;
}

struct Block {
  const haloscope::Grid<3>& grid;
  std::array<View, 4> arrays;  // u, v, w, p
  haloscope::Exchange& halo;

  template <class Visit>
  void each_cell(Visit visit) const {
    const auto n = grid.cells();
    for (std::int64_t k = 0; k < n[2]; ++k)
      for (std::int64_t j = 0; j < n[1]; ++j)
        for (std::int64_t i = 0; i < n[0]; ++i) visit(i, j, k);
  }
  /// Fills the halos of some arrays on one side of each dimension.
  void fill(const std::vector<int>& only, int low, int high) {
    const auto n = grid.cells();
    const auto lo = grid.owned().lo, hi = grid.owned().hi;
    for (const int f : only)
      for (std::int64_t k = 0; k < n[2]; ++k)
        for (std::int64_t j = 0; j < n[1]; ++j) {
          arrays[f](-1, j, k) = arrays[f](nx - 1, j, k);
          arrays[f](nx, j, k) = arrays[f](0, j, k);
        }
    halo.exchange({.only = only, .low = {0, low, 0}, .high = {0, high, 0}, .ghost_rows = true});
    for (const int f : only)
      for (std::int64_t j = -1; j <= n[1]; ++j)
        for (std::int64_t i = -1; i <= nx; ++i) {
          if (lo[2] == 0) arrays[f](i, j, -1) = arrays[f](i, j, 0);
          if (hi[2] == nz) arrays[f](i, j, n[2]) = arrays[f](i, j, n[2] - 1);
        }
    halo.exchange({.only = only, .low = {0, 0, low}, .high = {0, 0, high}, .ghost_rows = true});
  }
  void step() {
    const auto& [u, v, w, p] = arrays;
    fill({0, 1, 2}, 1, 0);
    each_cell([&](auto i, auto j, auto k) {
      p(i, j, k) = 0.5 * p(i, j, k) +
                   0.125 * ((u(i - 1, j - 1, k) + v(i - 1, j - 1, k - 1)) + (w(i, j - 1, k - 1) + u(i - 1, j, k - 1)));
    });
    fill({3}, 0, 1);
    each_cell([&](auto i, auto j, auto k) {
      u(i, j, k) = 0.5 * u(i, j, k) + 0.25 * (p(i + 1, j + 1, k + 1) + p(i + 1, j + 1, k));
      v(i, j, k) = 0.5 * v(i, j, k) + 0.25 * (p(i + 1, j, k + 1) + p(i + 1, j + 1, k + 1));
      w(i, j, k) = 0.5 * w(i, j, k) + 0.25 * (p(i, j + 1, k + 1) + p(i, j, k + 1));
    });
  }
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    int size = 1, split[2] = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, split);
    const haloscope::Grid<3> grid(MPI_COMM_WORLD,
                                  {.cells = {nx, ny, nz},
                                   .periodic = {true, true, false},
                                   .process_grid = "1x" + std::to_string(split[0]) + "x" + std::to_string(split[1])});
    const haloscope::Field<double, 3> u(grid, {}), v(grid, {}), w(grid, {}), p(grid, {});
    auto halo = haloscope::make_exchange(grid, {u, v, w, p}, argc > 1 ? argv[1] : "auto");
    Block block{grid, {u[0], v[0], w[0], p[0]}, halo};
    const auto first = grid.owned().lo;
    for (int f = 0; f < 4; ++f)
      block.each_cell([&](auto i, auto j, auto k) {
        block.arrays[f](i, j, k) = initial(first[0] + i, first[1] + j, first[2] + k, f);
      });
    for (int step = 0; step < steps; ++step) block.step();
    std::uint64_t sum = 0, all = 0;
    for (int f = 0; f < 4; ++f)
      block.each_cell([&](auto i, auto j, auto k) {
        const std::int64_t cell = ((first[2] + k) * ny + first[1] + j) * nx + first[0] + i;
        sum += std::bit_cast<std::uint64_t>(block.arrays[f](i, j, k)) * static_cast<std::uint64_t>(2 * cell + 1);
      });
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (grid.rank() == 0) std::printf("%016llx\n", static_cast<unsigned long long>(all));
  }
  MPI_Finalize();
}
