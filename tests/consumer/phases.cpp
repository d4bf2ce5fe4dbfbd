// A code with many phases: 15 fields of different centring with two layers of room, and seven exchanges a step of other
// fields and depths, by one Exchange. Prints a checksum that does not depend on the number of ranks.
#include <mpi.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <haloscope/haloscope.hpp>
#include <vector>

namespace {

using haloscope::Centring;

constexpr int fields = 15, steps = 10;
constexpr std::array<Centring, fields> centrings{Centring::cell,   Centring::cell,   Centring::cell,  Centring::cell,
                                                 Centring::cell,   Centring::cell,   Centring::cell,  Centring::node,
                                                 Centring::node,   Centring::node,   Centring::node,  Centring::face_x,
                                                 Centring::face_x, Centring::face_y, Centring::face_y};

/// The fields that a phase exchanges, and the layers that it reads then.
struct Phase {
  haloscope::ExchangePart part;
};
const std::array<Phase, 7> phases{{{{.only = {0, 2, 4, 7, 9}, .depth = 1}},
                                   {{.only = {5}, .depth = 1}},
                                   {{.only = {4}, .depth = 1}},
                                   {{.only = {0, 1, 2, 3, 11, 13}, .depth = 2}},
                                   {{.only = {1, 3, 8, 10, 12, 14}, .depth = 2}},
                                   {{.only = {0, 2, 4, 5, 6}, .depth = 2}},
                                   {{.only = {8, 10}, .depth = 1}}}};

struct Array {
  haloscope::Field<double, 2> memory;
  std::int64_t nx, ny;  // owned points, shared planes included
};

double initial(std::int64_t i, std::int64_t j, int field) {
  return static_cast<double>((i * 7919 + j * 104729 + field * 1299709) % 1000003) / 1000003;
}

/// Sets points to averages of themselves and of the points `depth` away.
void smooth(const Array& a, int depth, std::vector<double>& copy) {
  const auto u = a.memory[0];
  copy.clear();
  for (std::int64_t j = 0; j < a.ny; ++j)
    for (std::int64_t i = 0; i < a.nx; ++i)
      copy.push_back(0.5 * u(i, j) +
                     0.125 * ((u(i - depth, j) + u(i + depth, j)) + (u(i, j - depth) + u(i, j + depth))));
  for (std::int64_t j = 0, n = 0; j < a.ny; ++j)
    for (std::int64_t i = 0; i < a.nx; ++i, ++n) u(i, j) = copy[static_cast<std::size_t>(n)];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const std::int64_t cells[2] = {30, 22};
    const haloscope::Grid<2> grid(MPI_COMM_WORLD, {.cells = {cells[0], cells[1]}, .periodic = {true, true}});
    const auto n = grid.cells(), first = grid.owned().lo;
    std::vector<Array> arrays;
    std::vector<haloscope::FieldRef> list;
    for (int f = 0; f < fields; ++f) {
      const Centring c = centrings[static_cast<std::size_t>(f)];
      haloscope::Field<double, 2> memory(grid, {.halo = 2, .centring = c});
      const bool more_x = c == Centring::node || c == Centring::face_x,
                 more_y = c == Centring::node || c == Centring::face_y;
      arrays.push_back({std::move(memory), n[0] + more_x, n[1] + more_y});
      list.push_back(arrays.back().memory);
      for (std::int64_t j = 0; j < arrays.back().ny; ++j)
        for (std::int64_t i = 0; i < arrays.back().nx; ++i)
          arrays.back().memory[0](i, j) = initial((first[0] + i) % cells[0], (first[1] + j) % cells[1], f);
    }
    auto halo = haloscope::make_exchange(grid, list, argc > 1 ? argv[1] : "auto");
    std::vector<double> copy;
    for (int step = 0; step < steps; ++step)
      for (const Phase& phase : phases) {
        halo.exchange(phase.part);
        for (const int f : phase.part.only) smooth(arrays[static_cast<std::size_t>(f)], phase.part.depth, copy);
      }
    std::uint64_t sum = 0, all = 0;
    for (int f = 0; f < fields; ++f)
      for (std::int64_t j = 0; j < n[1]; ++j)
        for (std::int64_t i = 0; i < n[0]; ++i)
          sum += std::bit_cast<std::uint64_t>(arrays[static_cast<std::size_t>(f)].memory[0](i, j)) *
                 static_cast<std::uint64_t>(2 * ((first[1] + j) * cells[0] + first[0] + i) + 1);
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (grid.rank() == 0) std::printf("%016llx\n", static_cast<unsigned long long>(all));
  }
  MPI_Finalize();
}
