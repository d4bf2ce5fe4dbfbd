// Heat in 3D, wrapped around in x and y and cold beyond the edges in z.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <haloscope/haloscope.hpp>

namespace {

constexpr std::array<int, 3> cells{26, 21, 19};

void simulate() {
  int size = 0, rank = 0, ranks[3] = {}, wrap[3] = {1, 1, 0}, place[3];
  MPI_Comm cart;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 3, ranks);
  MPI_Cart_create(MPI_COMM_WORLD, 3, ranks, wrap, 0, &cart);
  MPI_Comm_rank(cart, &rank);
  MPI_Cart_coords(cart, rank, 3, place);
  std::array<int, 3> n, first;
  for (int d = 0; d < 3; ++d) {
    const int even = cells[d] / ranks[d], rest = cells[d] % ranks[d];
    n[d] = even + (place[d] < rest);
    first[d] = even * place[d] + std::min(place[d], rest);
  }

  const long row = n[0] + 2, plane = row * (n[1] + 2);
  std::vector<double> u[2] = {std::vector<double>(plane * (n[2] + 2)), std::vector<double>(plane * (n[2] + 2))};
  const auto at = [&](int i, int j, int k) { return (k + 1) * plane + (j + 1) * row + i + 1; };
  const auto grid = haloscope::Grid<3>::of_cartesian(cart, {cells[0], cells[1], cells[2]});
  const auto field = haloscope::view<double, 3>(grid, {&u[0][at(0, 0, 0)], &u[1][at(0, 0, 0)]}, row, plane, 1);
  auto halo = haloscope::make_exchange(grid, {field}, "auto", {.corners = false});

  for (int k = 0; k < n[2]; ++k)
    for (int j = 0; j < n[1]; ++j)
      for (int i = 0; i < n[0]; ++i) u[0][at(i, j, k)] = first[0] + i + first[1] + j + first[2] + k < 12;
  for (int step = 0; step < 50; ++step) {
    const double* old = u[step % 2].data();
    double* now = u[(step + 1) % 2].data();
    halo.exchange(step % 2);
    for (int k = 0; k < n[2]; ++k)
      for (int j = 0; j < n[1]; ++j)
        for (int i = 0; i < n[0]; ++i) {
          const long c = at(i, j, k);
          now[c] = old[c] + 0.1 * ((old[c - 1] + old[c + 1]) + (old[c - row] + old[c + row]) +
                                   (old[c - plane] + old[c + plane]) - 6.0 * old[c]);
        }
  }

  std::uint64_t own = 0, all = 0;  // a number made of all bits and their positions
  for (int k = 0; k < n[2]; ++k)
    for (int j = 0; j < n[1]; ++j)
      for (int i = 0; i < n[0]; ++i) {
        const std::uint64_t cell = first[0] + i + cells[0] * (first[1] + j + cells[1] * (first[2] + k));
        own += std::bit_cast<std::uint64_t>(u[0][at(i, j, k)]) * (2 * cell + 1);
      }
  MPI_Reduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, 0, cart);
  if (rank == 0) std::printf("bits %016llx\n", static_cast<unsigned long long>(all));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate();
  MPI_Finalize();
}
