// A code whose dimensions (1 to 3) and layers (1 to 8) are known at run time: flat arrays on a Grid<3>, whose further
// dimensions have one cell; the array of the new time changes by call. Prints checksums that do not depend on the
// number of ranks.
#include <mpi.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <haloscope/haloscope.hpp>
#include <utility>
#include <vector>

namespace {

constexpr int steps = 4;
constexpr std::int64_t all[] = {18, 16, 20};

/// A block of cells with its ghost layers in the first `dims` dimensions.
struct Block {
  int dims, layers;
  std::int64_t n[3], low[3], stride[3], points = 1, first = 0;

  Block(const haloscope::Grid<3>& grid, int of_dims, int of_layers) : dims(of_dims), layers(of_layers) {
    for (int d = 0; d < 3; ++d) {
      n[d] = grid.cells()[d], low[d] = grid.owned().lo[d], stride[d] = points;
      points *= n[d] + 2 * room(d);
    }
    for (int d = 0; d < 3; ++d) first += room(d) * stride[d];
  }
  int room(int d) const { return d < dims ? layers : 0; }
  template <class Visit>
  void each_cell(Visit visit) const {
    for (std::int64_t k = 0; k < n[2]; ++k)
      for (std::int64_t j = 0; j < n[1]; ++j)
        for (std::int64_t i = 0; i < n[0]; ++i)
          visit(first + i + j * stride[1] + k * stride[2], low[0] + i, low[1] + j, low[2] + k);
  }
};

void step(const Block& block, const double* u, double* v) {
  block.each_cell([&](std::int64_t p, auto...) {
    double total = 0.5 * v[p];
    for (int k = 1; k <= block.layers; ++k) {
      double pairs = u[p - k] + u[p + k];
      for (int d = 1; d < block.dims; ++d) pairs += u[p - k * block.stride[d]] + u[p + k * block.stride[d]];
      total += 0.125 / (k * k) * pairs;
    }
    v[p] = total;
  });
}

void run(int dims, int layers, const char* strategy) {
  const bool y = dims > 1, z = dims > 2;
  const haloscope::Grid<3> grid(MPI_COMM_WORLD,
                                {.cells = {all[0], y ? all[1] : 1, z ? all[2] : 1}, .periodic = {true, false, z}});
  const Block block(grid, dims, layers);
  std::vector<double> memory[2] = {std::vector<double>(block.points), std::vector<double>(block.points)};
  for (std::vector<double>& values : memory)
    block.each_cell([&](std::int64_t p, std::int64_t i, std::int64_t j, std::int64_t k) {
      values[p] = static_cast<double>((i * 7919 + j * 104729 + k * 15485863) % 1000003) / 1000003;
    });
  double *u = memory[0].data(), *v = memory[1].data();
  const haloscope::ViewOptions<3> options{.stride = {8, 8 * block.stride[1], 8 * block.stride[2]},
                                          .low = {block.room(0), block.room(1), block.room(2)},
                                          .high = {block.room(0), block.room(1), block.room(2)}};
  auto halo =
      haloscope::make_exchange(grid, {view<double, 3>(grid, {u + block.first}, options)}, strategy, {.corners = false});
  for (int n = 0; n < steps; ++n, std::swap(u, v)) {
    halo.exchange_at(std::vector<void*>{u + block.first});
    step(block, u, v);
  }
  std::uint64_t mine = 0, sum = 0;
  block.each_cell([&](std::int64_t p, std::int64_t i, std::int64_t j, std::int64_t k) {
    const std::int64_t cell = (k * (y ? all[1] : 1) + j) * all[0] + i;
    mine += std::bit_cast<std::uint64_t>(u[p]) * static_cast<std::uint64_t>(2 * cell + 1);
  });
  MPI_Reduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (grid.rank() == 0) std::printf("%016llx\n", static_cast<unsigned long long>(sum));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int dims = 1; dims <= 3; ++dims)
    for (const int layers : {1, 2, 5, 8}) run(dims, layers, argc > 1 ? argv[1] : "auto");
  MPI_Finalize();
}
