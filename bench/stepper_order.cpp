// Figure `stepper_order`: a Stepper's sweep of large blocks in strips that stay in the cache, against whole boxes.
// One rank without neighbours, a user's 7-point sweep of doubles: only the order of visits differs.
#include <mpi.h>

#include "haloscope/haloscope.hpp"
#include "haloscope/stepper.hpp"
#include "harness.hpp"

namespace {

using namespace haloscope;

void average(const SweepArgs& args) {
  const Box& b = args.region;
  const auto in = args.read<double, 3>(0);
  const auto out = args.write<double, 3>(0);
  for (auto k = b.lo[2]; k < b.hi[2]; ++k)
    for (auto j = b.lo[1]; j < b.hi[1]; ++j)
      for (auto i = b.lo[0]; i < b.hi[0]; ++i)
        out(i, j, k) = 0.4 * in(i, j, k) + 0.1 * (in(i - 1, j, k) + in(i + 1, j, k) + in(i, j - 1, k) +
                                                  in(i, j + 1, k) + in(i, j, k - 1) + in(i, j, k + 1));
}

void fill(const Grid<3>& grid, const Field<double, 3>& u) {
  const auto [nx, ny, nz] = grid.cells();
  for (int slot : {0, 1})
    for (std::int64_t k = -1; k <= nz; ++k)
      for (std::int64_t j = -1; j <= ny; ++j)
        for (std::int64_t i = -1; i <= nx; ++i)
          u[slot](i, j, k) = 1 + static_cast<double>((i + 3 * j + 7 * k) % 97) / 97;
}

void compare(std::int64_t n, std::int64_t strip_bytes, int steps) {
  const Grid<3> grid(MPI_COMM_WORLD, {.cells = {n, n, n}});
  const Field<double, 3> u(grid, {.halo = 1, .slots = 2});
  fill(grid, u);
  Stepper strips(grid, {u}, {}, average, {.strip_bytes = strip_bytes}), whole(grid, {u}, {}, average);
  std::vector<bench::Variant> variants{{"strips", [&] { strips.run(steps); }}, {"whole", [&] { whole.run(steps); }}};
  bench::take_turns(variants, 15);
  bench::emit({.figure = "stepper_order",
               .name = std::to_string(n) + "^3, strips of " + std::to_string(strip_bytes >> 10) + " KiB",
               .a = "strips",
               .b = "whole boxes",
               .samples_a = variants[0].seconds,
               .samples_b = variants[1].seconds,
               .value = "a/b",
               .bar = bench::no_bar,
               .direction = "<=",
               .notes = std::to_string(steps) + " steps a sample, 7-point, double"});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bench::pin_to(bench::usable_cpus().front());
  for (const std::int64_t kib : {24, 256})  // most of L1, half of L2 of a common core
    for (const std::int64_t n : {128, 256}) compare(n, kib << 10, n > 200 ? 2 : 8);
  MPI_Finalize();
}
