// Steppers whose steps have sweeps in place or loops of stages: the bits of plain loops over the whole grid.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "allocation_counter.hpp"
#include "haloscope/extend/app.hpp"
#include "haloscope/haloscope.hpp"
#include "haloscope/stepper.hpp"
#include "link_rig.hpp"
#include "tori.hpp"

namespace haloscope::test {
namespace {

/// The whole grid and one layer around it, on every rank.
template <int D>
struct Everything {
  Index cells;
  std::vector<double> values;
  Everything(const Index& n, std::uint64_t seed)
      : cells(n), values(static_cast<std::size_t>(size(0) * size(1) * size(2))) {
    const Index low{-1, first(1), first(2)};
    each_point({low, {cells[0] + 1, size(1) + low[1], size(2) + low[2]}}, [&](const Index& p) {
      (*this)(p[0], p[1], p[2]) = random_value(seed, 0, {D, n, {}}, p);
    });
  }
  std::int64_t first(int d) const { return d < D ? -1 : 0; }
  std::int64_t size(int d) const { return cells[d] - 2 * first(d); }
  double& operator()(std::int64_t i, std::int64_t j, std::int64_t k) { return values[place(i, j, k)]; }
  double operator()(std::int64_t i, std::int64_t j, std::int64_t k) const { return values[place(i, j, k)]; }
  std::size_t place(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return static_cast<std::size_t>(((k - first(2)) * size(1) + j - first(1)) * size(0) + i + 1);
  }
};

/// One Gauss-Seidel relaxation of a box. @return the largest change.
template <int D, class U, class F>
double relax(const Box& box, const U& u, const F& f, const Index& shift = {}) {
  double most = 0;
  for (auto k = box.lo[2]; k < box.hi[2]; ++k)
    for (auto j = box.lo[1]; j < box.hi[1]; ++j)
      for (auto i = box.lo[0]; i < box.hi[0]; ++i) {
        double sum = f(i + shift[0], j + shift[1], k + shift[2]) + u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) +
                     u(i, j + 1, k);
        if (D == 3) sum += u(i, j, k - 1) + u(i, j, k + 1);
        most = std::max(most, std::abs(sum / (2 * D + 1) - u(i, j, k)));
        u(i, j, k) = sum / (2 * D + 1);
      }
  return most;
}

template <int D>
Grid<D> slabs() {
  GridOptions<D> options;
  for (int d = 0; d < D; ++d) options.cells[d] = 6 + d;
  options.cells[D - 1] = 3 * world_size() + 2;
  options.process_grid = "slabs";
  return Grid<D>(MPI_COMM_WORLD, options);
}

/// Gauss-Seidel by a Stepper against the loop over the whole grid.
template <int D>
void expect_sequential_bits(const char* strategy, const std::vector<int>& series) {
  const Grid<D> grid = slabs<D>();
  const Index n = grid.layout().grid().cells, own = grid.cells(), at = grid.owned().lo;
  Everything<D> u(n, 5), f(n, 6);
  Field<double, D> mine{grid, {.halo = 1}}, source{grid, {.halo = 0, .name = "source"}};
  const int z = D == 3 ? 1 : 0;
  for (std::int64_t k = -z; k < own[2] + z; ++k)
    for (std::int64_t j = -1; j <= own[1]; ++j)
      for (std::int64_t i = -1; i <= own[0]; ++i) mine[0](i, j, k) = u(at[0] + i, at[1] + j, at[2] + k);
  const auto sweep = [&](const SweepArgs& args) {
    const double change = relax<D>(args.region, args.write<double, D>(0), f, at);
    if (args.reduced) *args.reduced = std::max(*args.reduced, change);
  };
  const std::vector<Stage> stages{
      {.sweeps = {{.name = "relax", .reads = {{0, 1}, {1, 0}}, .writes = {0}, .in_place = true, .run = sweep}},
       .reductions = {{.name = "change", .op = ReduceOp::max}}}};
  Choice choice{.schedule = "pipeline", .strategy = strategy};
  Stepper stepper(grid, {mine, source}, choice, stages);
  const auto whole = [&](std::int64_t i, std::int64_t j, std::int64_t k) -> double& { return u(i, j, k); };
  for (const int steps : series) {
    double change = 0;
    for (int t = 0; t < steps; ++t) change = relax<D>({{0, 0, 0}, n}, whole, f);
    EXPECT_EQ(stepper.run(steps), 0);
    ASSERT_EQ(stepper.reduced()[0], change);
    for (std::int64_t k = 0; k < own[2]; ++k)
      for (std::int64_t j = 0; j < own[1]; ++j)
        for (std::int64_t i = 0; i < own[0]; ++i)
          ASSERT_EQ(mine[0](i, j, k), u(at[0] + i, at[1] + j, at[2] + k)) << i << "," << j << "," << k;
  }
}

TEST(StepperInPlace, SweepsHaveTheBitsOfTheSequentialLoop) {
  for (const char* strategy : {"ordered/p2p", "direct/persistent", "ordered/shared:packed"}) {
    SCOPED_TRACE(strategy);
    expect_sequential_bits<2>(strategy, {1, 4, 2});
    expect_sequential_bits<3>(strategy, {3, 1});
  }
}

/// A step of averages: u to v, then v back to u, as a loop of two stages. The change of the last average is reduced.
std::vector<Stage> averages(std::int64_t least, std::int64_t most) {
  const auto back = [](const SweepArgs& args) {
    const auto old = args.read<double, 2>(0);
    const auto into = args.write<double, 2>(0);
    const auto in = args.read<double, 2>(1);
    for_points(args.region, [&](auto i, auto j) {
      if (args.reduced) *args.reduced = std::max(*args.reduced, std::abs(in(i, j) - old(i, j)));
      into(i, j) = in(i, j);
    });
  };
  return {{.name = "average",
           .sweeps = {{.name = "average",
                       .reads = {{0, 1}},
                       .writes = {1},
                       .run = [](const SweepArgs& args) { average_neighbours(args, 0, 1); }}},
           .repeats = 2,
           .least = least,
           .most = most},
          {.name = "back",
           .sweeps = {{.name = "back", .reads = {{0, 0}, {1, 0}}, .writes = {0}, .run = back}},
           .reductions = {{.name = "change", .op = ReduceOp::max}}}};
}

/// The own values after one Stepper's steps, and the number of runs of the loop.
std::vector<double> looped(std::int64_t least, std::int64_t most, int steps, const StepperOptions& options) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {12, 13}, .periodic = {true, true}}};
  const Field<double, 2> u{grid, {.halo = 1}}, v{grid, {.halo = 1, .name = "v"}};
  fill_at_random(grid, u[0]);
  Stepper stepper(grid, {u, v}, {}, averages(least, most), options);
  stepper.run(steps);
  const std::int64_t before = allocations();
  stepper.run(0);
  EXPECT_EQ(allocations(), before);
  return own_values(grid, u[0]);
}

TEST(StepperLoops, SubCyclesOfAKnownNumberAreStepsOfTheirOwn) {
  EXPECT_EQ(looped(3, 3, 4, {}), looped(1, 1, 12, {}));
  EXPECT_EQ(looped(0, 0, 4, {}), looped(1, 1, 0, {}));
}

TEST(StepperLoops, ALoopEndsWhenItIsEnough) {
  int calls = 0;
  double last = 1;
  const auto enough = [&](int stage, std::span<const double> reduced) {
    EXPECT_EQ(stage, 0);
    EXPECT_EQ(reduced.size(), 1u);
    EXPECT_LE(reduced[0], last);  // averages of averages change less and less
    last = reduced[0];
    return ++calls == 5;
  };
  EXPECT_EQ(looped(2, 100, 1, {.finished = enough}), looped(1, 1, 6, {}));
  EXPECT_EQ(calls, 5);
}

TEST(StepperLoops, ALoopWithoutAnEndIsRefused) {
  const std::string text = error_of([] { looped(1, 9, 1, {}); });
  EXPECT_PART(text, "a loop of 1 to 9 times");
  EXPECT_PART(text, "StepperOptions::finished");
}

/// The own values after steps of averages to and fro, both of which exchange.
std::vector<double> averaged_to_and_fro(const char* strategy, int steps) {
  const Grid<2> grid{MPI_COMM_WORLD, {.cells = {12, 13}, .periodic = {true, true}}};
  const Field<double, 2> u{grid, {.halo = 1}}, v{grid, {.halo = 1, .name = "v"}};
  fill_at_random(grid, u[0]);
  const auto sweep = [](int from, int to) {
    const auto run = [=](const SweepArgs& args) { average_neighbours(args, from, to); };
    return SweepSpec{.name = "average", .reads = {{from, 1}}, .writes = {to}, .run = run};
  };
  Choice choice{.strategy = Strategy(strategy)};
  Stepper stepper(
      grid, {u, v}, choice,
      std::vector<Stage>{{.name = "to", .sweeps = {sweep(0, 1)}}, {.name = "fro", .sweeps = {sweep(1, 0)}}});
  stepper.run(steps);
  return own_values(grid, u[0]);
}

/// Each stage polls only its race, while the other one's reduction is in flight.
TEST(StepperLoops, RacesOfSeveralStagesKeepApart) {
  for (int n = 0; n < 3; ++n)
    EXPECT_EQ(averaged_to_and_fro("direct/auto", 200), averaged_to_and_fro("direct/p2p", 200));
}

/// The own values after a sum over neighbours, dealt in strips; and the max number of rows of a box.
std::pair<std::vector<double>, std::int64_t> stripped(std::int64_t strip_bytes, const Choice& choice) {
  const Grid<3> grid{MPI_COMM_WORLD, {.cells = {12, 50, 18}, .periodic = {true, false, true}, .process_grid = "slabs"}};
  const Field<double, 3> u{grid, {.halo = 2, .slots = 2}};
  const Box own{{0, 0, 0}, grid.cells()};
  each_point(grown(own, {0, 2, 0}, {0, 2, 0}), [&](const Index& p) {
    u[0](p[0], p[1], p[2]) = u[1](p[0], p[1], p[2]) =
        random_value(7, 0, grid.layout().grid(), {p[0], p[1], grid.owned().lo[2] + p[2]});
  });
  std::int64_t most = 0;
  const auto sweep = [&](const SweepArgs& args) {
    most = std::max(most, args.region.extent(1));
    const auto in = args.read<double, 3>(0);
    const auto out = args.write<double, 3>(0);
    each_point(args.region, [&](const Index& p) {
      const auto [i, j, k] = p;
      const double sum =
          in(i - 1, j, k) + in(i + 1, j, k) + in(i, j - 1, k) + in(i, j + 1, k) + in(i, j, k - 1) + in(i, j, k + 1);
      out(i, j, k) = sum / 6;
    });
  };
  Stepper stepper(grid, {u}, choice, sweep, {.strip_bytes = strip_bytes});
  const int slot = stepper.run(3);
  std::vector<double> values;
  each_point(own, [&](const Index& p) { values.push_back(u[slot](p[0], p[1], p[2])); });
  return {values, most};
}

TEST(StepperStrips, KeepTheBitsAndAreAsManyRowsAsFitTheCache) {
  for (const auto& [schedule, depth] : {std::pair{"bulk", 1}, {"split", 1}, {"bulk", 2}}) {
    Choice choice{.schedule = schedule, .depth = depth};
    const auto whole = stripped(0, choice), strips = stripped(20 * (3 * 14 + 12) * 8 - 1 + 8, choice);
    EXPECT_EQ(whole.first, strips.first) << schedule << depth;
    EXPECT_GT(whole.second, 20) << schedule << depth;
    EXPECT_LE(strips.second, depth == 1 && choice.schedule->name == "bulk" ? 20 : 40) << schedule << depth;
    EXPECT_EQ(stripped(1, choice).second, 8) << schedule << depth;
  }
}

}  // namespace
}  // namespace haloscope::test
