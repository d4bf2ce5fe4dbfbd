// A code whose ranks own several tiles each, of sizes and numbers that are known at run time; some own none. Cells with
// two ghost layers and faces with one travel in turn. Prints checksums that do not depend on the tiles or the ranks,
// of the cells and their norm.
#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <haloscope/haloscope.hpp>
#include <vector>

namespace {

using haloscope::Field;
using haloscope::FieldView;

constexpr int steps = 4;
constexpr std::int64_t nx = 37, ny = 26;  // x wraps around

/// The tiles of a rank.
std::vector<haloscope::Box> own_tiles(std::int64_t columns, std::int64_t rows) {
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<haloscope::Box> own;
  int n = 0;
  for (std::int64_t y = 0; y < ny; y += rows)
    for (std::int64_t x = 0; x < nx; x += columns, ++n)
      if ((5 * n + n / 4) % ranks == rank)
        own.push_back({{x, y, 0}, {std::min(x + columns, nx), std::min(y + rows, ny), 1}});
  return own;
}

void find_fluxes(const haloscope::Index& n, const FieldView<double, 2>& u, const FieldView<double, 2>& f) {
  for (std::int64_t j = 0; j < n[1]; ++j)
    for (std::int64_t i = 0; i <= n[0]; ++i) f(i, j) = (u(i - 1, j) - u(i, j)) + 0.25 * (u(i - 2, j) - u(i + 1, j));
}

void advance(const haloscope::Index& n, const FieldView<double, 2>& u, const FieldView<double, 2>& f) {
  for (std::int64_t j = 0; j < n[1]; ++j)
    for (std::int64_t i = 0; i < n[0]; ++i)
      u(i, j) += 0.1 * (f(i, j) - f(i + 1, j)) + 0.05 * (f(i - 1, j - 1) - f(i + 2, j + 1));
}

void run(std::int64_t columns, std::int64_t rows, const char* strategy) {
  const auto grid = haloscope::Grid<2>::of_blocks(MPI_COMM_WORLD, {nx, ny}, {true, false}, own_tiles(columns, rows));
  std::vector<Field<double, 2>> u, f;
  std::vector<haloscope::FieldRef> fields;
  for (int tile = 0; tile < std::max(1, grid.blocks()); ++tile) {
    u.emplace_back(grid, haloscope::FieldOptions{.halo = 2, .block = tile});
    f.emplace_back(grid, haloscope::FieldOptions{.halo = 1, .centring = haloscope::Centring::face_x, .block = tile});
    fields.push_back(u.back());
    fields.push_back(f.back());
  }
  const auto each_cell = [&](auto visit) {
    for (int tile = 0; tile < grid.blocks(); ++tile)
      for (std::int64_t j = 0; j < grid.cells(tile)[1]; ++j)
        for (std::int64_t i = 0; i < grid.cells(tile)[0]; ++i)
          visit(u[tile][0](i, j), grid.owned(tile).lo[0] + i, grid.owned(tile).lo[1] + j);
  };
  each_cell([](double& value, std::int64_t i, std::int64_t j) {
    value = static_cast<double>((i * 7919 + j * 104729) % 1000003) / 1000003;
  });
  auto halo = haloscope::make_exchange(grid, fields, strategy);
  for (int n = 0; n < steps; ++n) {
    halo.exchange({.only = {0}});
    for (int tile = 0; tile < grid.blocks(); ++tile) find_fluxes(grid.cells(tile), u[tile][0], f[tile][0]);
    halo.exchange({.only = {1}});
    for (int tile = 0; tile < grid.blocks(); ++tile) advance(grid.cells(tile), u[tile][0], f[tile][0]);
  }
  const double norm = haloscope::norm(grid, {u.begin(), u.end()});
  std::uint64_t mine = grid.rank() == 0 ? std::bit_cast<std::uint64_t>(norm) : 0, sum = 0;
  each_cell([&](double value, std::int64_t i, std::int64_t j) {
    mine += std::bit_cast<std::uint64_t>(value) * static_cast<std::uint64_t>(2 * (j * nx + i) + 1);
  });
  MPI_Reduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (grid.rank() == 0) std::printf("%016llx\n", static_cast<unsigned long long>(sum));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  constexpr std::int64_t tiles[][2] = {{10, 9}, {37, 26}, {40, 5}};
  for (const auto& [columns, rows] : tiles) run(columns, rows, argc > 1 ? argv[1] : "auto");
  MPI_Finalize();
}
