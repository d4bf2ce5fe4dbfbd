// The guard: stale halos are poisoned, named when they are required, and found where they were read.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <complex>
#include <cstring>

#include "allocation_counter.hpp"
#include "haloscope/haloscope.hpp"
#include "random_case.hpp"
#include "tori.hpp"

namespace haloscope {
namespace {

using namespace test;

/// The distance of a cell from the own ones.
std::int64_t layer(const Grid<2>& grid, std::int64_t i, std::int64_t j) {
  const Index n = grid.cells();
  return std::max({std::int64_t{0}, -i, i - n[0] + 1, -j, j - n[1] + 1});
}

TEST(Guard, ChangedPoisonsTheLayersThatAreStaleAndNoOthers) {
  const auto grid = torus();
  Field<double, 2> u{grid, {.halo = 3, .slots = 2}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p", {.guard = true});
  for (const int fresh : {3, 2, 0}) {
    each_cell(grid, 3, [&](auto i, auto j) { u[1](i, j) = u[0](i, j) = 1; });
    halo.exchange(1);
    halo.changed(1, fresh);
    each_cell(grid, 3, [&](auto i, auto j) {
      EXPECT_EQ(std::isnan(u[1](i, j)), layer(grid, i, j) > fresh) << i << "," << j;
      EXPECT_EQ(u[0](i, j), 1);
    });
    halo.require_fresh(fresh, 1);
    EXPECT_EQ(error_of([&] { halo.require_fresh(fresh + 1, 1); }) == "no error", false);
  }
}

TEST(Guard, NothingIsAllocatedInStepsWhateverIsStale) {
  const auto grid = torus();
  Field<double, 2> u{grid, {.halo = 3}};
  for (const char* strategy : {"ordered/p2p", "direct/shared:packed", "direct/rma-fence"}) {
    auto halo = make_exchange(grid, {u}, strategy, {.guard = true});
    std::int64_t before = 0;
    for (int step = 0; step < 10; ++step) {
      halo.exchange();
      halo.require_fresh(3);
      halo.check_clean();
      if (step == 0) before = allocations();
      halo.changed(0, step % 4);
    }
    EXPECT_EQ(allocations(), before) << strategy;
  }
}

/// As docs/use/library.md shows it; then without the exchange.
TEST(Guard, AForgottenExchangeIsNamedAndWhatItSpoiltIsFound) {
  const auto grid = torus();
  Field<double, 2> u{grid, {}};
  each_cell(grid, 0, [&](auto i, auto j) { u[0](i, j) = 1; });
  const auto sweep = [&](const Field<double, 2>& field) {
    each_cell(grid, 0, [&](auto i, auto j) { field[0](i, j) = 0.5 * (field[0](i, j) + field[0](i - 1, j)); });
  };
  auto halo = haloscope::make_exchange(grid, {u}, "auto", {.guard = true});  // or HALOSCOPE_GUARD=1 ./app
  halo.exchange();
  halo.require_fresh(1);  // a sweep reads one layer from here
  sweep(u);
  halo.changed();      // own cells are new: the halo is stale, and poisoned
  halo.check_clean();  // did poison reach own cells?
  EXPECT_PART(error_of([&] { halo.require_fresh(1); }), "is stale");
  sweep(u);
  EXPECT_NE(error_of([&] { halo.check_clean(); }), "no error");
}

/// Poison lies where an exchange writes, and nowhere else.
TEST(Guard, PoisonIsWhereAnExchangeFillsForAnyWidthsSidesAndEdges) {
  std::mt19937 random(30);
  for (int n = 0; n < 20; ++n) {
    GridOptions<3> options;
    ExchangeOptions how{.corners = pick(random, 0, 1) == 1, .guard = true};
    const ProcessGrid ranks = random_grid(random, world_size(), 3);
    options.process_grid = std::to_string(ranks[0]) + "x" + std::to_string(ranks[1]) + "x" + std::to_string(ranks[2]);
    for (int d = 0; d < 3; ++d) {
      options.periodic[d] = pick(random, 0, 1);
      options.cells[d] = 2 * ranks[d] + pick(random, 0, 3);
      how.low[d] = pick(random, 0, 2);
      how.high[d] = pick(random, 0, 2);
    }
    const Grid<3> grid(MPI_COMM_WORLD, options);
    Field<float, 3> u{grid, {.halo = 2, .centring = static_cast<Centring>(pick(random, 0, 4))}};
    auto halo = make_exchange(grid, {u}, pick(random, 0, 1) ? "ordered/p2p" : "direct:merged/p2p", how);
    const auto visit = [&](auto f) {
      const Box own = halo.plan().owned(0);
      each_point(grown(own, {2, 2, 2}, {2, 2, 2}), [&](const Index& p) { f(u[0](p[0], p[1], p[2]), own.contains(p)); });
    };
    std::vector<bool> poisoned, filled;
    visit([](float& x, bool) { x = 5; });
    halo.changed();
    visit([&](float& x, bool) { poisoned.push_back(std::isnan(x)); });
    visit([](float& x, bool own) { x = own ? 1 : 7; });
    halo.exchange();
    visit([&](float& x, bool own) { filled.push_back(!own && x == 1); });
    EXPECT_EQ(poisoned, filled);
    halo.check_clean();
  }
}

TEST(Guard, AStaleHaloThatIsWantedIsNamedWithFieldSideLayersAndExchange) {
  const auto grid = torus();
  Field<double, 2> u{grid, {.halo = 2, .name = "u"}}, v{grid, {.halo = 2, .name = "v"}};
  auto halo = make_exchange(grid, {u, v}, "direct/p2p",
                            {.widths = {{{2, 2, 0}, {2, 2, 0}}, {{0, 2, 0}, {0, 1, 0}}}, .guard = true});
  EXPECT_PART(error_of([&] { halo.require_fresh(1); }), "never been exchanged");
  halo.exchange();
  halo.exchange();
  halo.require_fresh(1);
  std::string error = error_of([&] { halo.require_fresh(2); });
  EXPECT_PART(error, "field 'v'");
  EXPECT_PART(error, "the high side in y: 2 layers requested, 1 fresh");
  EXPECT_PART(error, "which fills 1; give it a wider halo");
  halo.changed();
  error = error_of([&] { halo.require_fresh(1); });
  EXPECT_PART(error, "field 'u' in slot 0");
  EXPECT_PART(error, "the low side in x: 1 layer requested, 0 fresh; its last exchange was number 2");
  halo.require_fresh(0);
  EXPECT_PART(error_of([&] { halo.changed(1); }), "slot 1");
  EXPECT_PART(error_of([&] { halo.changed(0, -1); }), "0 or more");
}

/// A code that forgets an exchange: each cell becomes its left neighbour.
template <class T>
void expect_found(const char* kind) {
  SCOPED_TRACE(kind);
  const auto grid = torus();
  const Index n = grid.cells();
  Field<T, 2> u{grid, {.halo = 1, .name = "u"}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p", {.guard = true});
  each_cell(grid, 1, [&](auto i, auto j) { u[0](i, j) = T(1); });
  halo.exchange();
  halo.check_clean();
  halo.changed();
  halo.check_clean();
  if (grid.rank() == world_size() - 1)  // on this one only, and all fail
    for (std::int64_t i = n[0] - 1; i >= 0; --i) u[0](i, 2) = u[0](i - 1, 2) * T(1);
  const std::string error = error_of([&] { halo.check_clean(); });
  const auto last = grid.layout().owned(world_size() - 1).lo;
  const std::string global = "(" + std::to_string(last[0]) + ", " + std::to_string(last[1] + 2) + ")";
  EXPECT_PART(error, "own point (0, 2) of field 'u', globally " + global);
  EXPECT_PART(error, "a stale halo on the low side in x; its last exchange was number 1");
  EXPECT_EQ(error.rfind("rank ", 0) == 0, grid.rank() != world_size() - 1) << error;
}

TEST(Guard, PoisonThatReachedOwnPointsIsNamedWithTheSideThatItCameFrom) {
  expect_found<double>("double");
  expect_found<float>("float");
  expect_found<std::complex<double>>("complex double");
  expect_found<std::int32_t>("int32");
  expect_found<std::uint64_t>("uint64");
}

TEST(Guard, ArithmeticKeepsTheSideOfThePoison) {
  const auto grid = torus();
  const Index n = grid.cells();
  Field<double, 2> u{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p", {.guard = true});
  const auto reads = [&](std::int64_t i, std::int64_t j, const char* side) {
    each_cell(grid, 1, [&](auto a, auto b) { u[0](a, b) = 1; });
    halo.exchange();
    halo.changed();
    u[0](1, 1) = std::sqrt(0.25 * (3.0 - u[0](i, j)) + 1.0) / 7.0;
    EXPECT_PART(error_of([&] { halo.check_clean(); }), side);
  };
  reads(-1, 3, "the low side in x");
  reads(n[0], 3, "the high side in x");
  reads(3, -1, "the low side in y");
  reads(3, n[1], "the high side in y");
}

TEST(Guard, OffItChangesNothingAndRefusesNothing) {
  const auto grid = torus();
  Field<double, 2> u{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p");
  each_cell(grid, 1, [&](auto i, auto j) { u[0](i, j) = 2; });
  halo.changed();
  halo.require_fresh(7);
  halo.check_clean();
  each_cell(grid, 1, [&](auto i, auto j) { EXPECT_EQ(u[0](i, j), 2); });
}

TEST(Guard, AccumulatedAndReboundHalosAreStaleAndNotPoisoned) {
  const auto grid = torus();
  Field<double, 2> u{grid, {.halo = 1}};
  auto halo = make_exchange(grid, {u}, "ordered/p2p", {.guard = true});
  halo.exchange();
  halo.accumulate();
  EXPECT_EQ(u[0](-1, 0), 0);
  EXPECT_PART(error_of([&] { halo.require_fresh(1); }), "stale");
  halo.start();
  while (!halo.progress()) {
  }
  halo.require_fresh(1);
  halo.rebind(std::vector<void*>{&u[0](0, 0)});
  EXPECT_PART(error_of([&] { halo.require_fresh(1); }), "stale");
  halo.exchange();
  halo.require_fresh(1);
}

TEST(Guard, TheEnvironmentOfRankZeroTurnsItOnAndOff) {
  const auto grid = torus();
  Field<double, 2> u{grid, {.halo = 1}};
  const auto is_on = [&](bool guarded) {
    auto halo = make_exchange(grid, {u}, "ordered/p2p", {.guard = guarded});
    EXPECT_EQ(has_part(halo.report(), "guarded"), error_of([&] { halo.require_fresh(1); }) != "no error");
    return has_part(halo.report(), "guarded");
  };
  {
    const Environment on(grid.rank() == 0 ? "HALOSCOPE_GUARD" : "HALOSCOPE_OTHER", "1");
    testing::internal::CaptureStderr();
    EXPECT_TRUE(is_on(false));
    testing::internal::GetCapturedStderr();
  }
  {
    const Environment off("HALOSCOPE_GUARD", "0");
    EXPECT_FALSE(is_on(true));
  }
  const Environment wrong("HALOSCOPE_GUARD", "yes");
  EXPECT_PART(error_of([&] { is_on(false); }), "HALOSCOPE_GUARD is 'yes'");
}

/// A star that reads `layers` layers and, with `corner`, a corner.
Stepper::SweepFunction star(int layers, bool corner) {
  return [=](const SweepArgs& args) {
    const auto old = args.read<double, 2>(0);
    const auto now = args.write<double, 2>(0);
    for_points(args.region, [&](auto i, auto j) {
      now(i, j) = 0.25 * (old(i - layers, j) + old(i, j - 1) + old(i, j + 1)) + (corner ? old(i + 1, j + 1) : 0.0);
    });
  };
}

TEST(Guard, AStepperFindsASweepThatReadsMoreThanItSays) {
  const auto grid = torus(60);  // 4 layers on 7 ranks
  Field<double, 2> u{grid, {.halo = 6, .slots = 2, .name = "u"}};
  for (int depth : {1, 2}) {
    Choice choice{.schedule = "split", .strategy = "ordered/p2p", .depth = depth};
    const auto run = [&](int layers, bool corner, int declared, bool box) {
      for (int slot : {0, 1}) each_cell(grid, 6, [&](auto i, auto j) { u[slot](i, j) = 1; });
      SweepSpec sweep{
          .name = "smooth", .reads = {{0, declared}}, .writes = {0}, .box_stencil = box, .run = star(layers, corner)};
      Stepper step(grid, {u}, choice, sweep, {.guard = true});
      return error_of([&] { step.run(5); });
    };
    EXPECT_EQ(run(1, false, 1, false), "no error") << depth;
    EXPECT_EQ(run(1, true, 1, true), "no error") << depth;
    EXPECT_EQ(run(2, false, 2, false), "no error") << depth;
    const std::string error = run(2, false, 1, false);
    EXPECT_PART(error, "sweep 'smooth'");
    EXPECT_PART(error, "low side in x");
  }
  Choice choice{.strategy = "direct/p2p"};
  for (int slot : {0, 1}) each_cell(grid, 6, [&](auto i, auto j) { u[slot](i, j) = 1; });
  Stepper step(grid, {u}, choice, SweepSpec{.name = "corner", .reads = {{0, 1}}, .writes = {0}, .run = star(1, true)},
               {.guard = true});
  EXPECT_PART(error_of([&] { step.run(1); }), "box_stencil");
}

/// The sum of u is reduced while v is swept; `greedy` sweeps of v, or of u, read two layers where they declare one.
std::vector<Stage> summed_while_swept(const bool& greedy, ReduceMode mode, bool first) {
  const auto add = [&greedy, first](const SweepArgs& args) {
    star(greedy && first ? 2 : 1, false)(args);
    if (args.reduced == nullptr) return;
    for_points(args.region, [&](auto i, auto j) { *args.reduced += args.read<double, 2>(0)(i, j); });
  };
  const auto follow = [&greedy, first](const SweepArgs& args) {
    const auto from = args.read<double, 2>(0);
    const auto to = args.write<double, 2>(1);
    for_points(args.region, [&](auto i, auto j) { to(i, j) = from(i - (greedy && !first ? 2 : 1), j); });
  };
  const std::string until = mode == ReduceMode::nonblocking ? "follow" : "";
  return {{.name = "add",
           .sweeps = {{.name = "add", .reads = {{0, 1}}, .writes = {0}, .run = add}},
           .reductions = {{.name = "sum", .mode = mode, .until = until}}},
          {.name = "follow", .sweeps = {{.name = "follow", .reads = {{0, 1}}, .writes = {1}, .run = follow}}}};
}

/// The reductions of two good steps, after `bad` runs that the guard has refused; the same steps then run once more.
std::vector<double> sums_after(int bad, ReduceMode mode, bool first) {
  const auto grid = torus();
  const Field<double, 2> u{grid, {.halo = 2, .slots = 2, .name = "u"}}, v{grid, {.halo = 2, .name = "v"}};
  bool greedy = true;
  Stepper step(grid, {u, v}, {}, summed_while_swept(greedy, mode, first), {.guard = true});
  std::vector<double> sums;
  const auto reset = [&] {
    each_cell(grid, 0, [&](auto i, auto j) { u[step.slot()](i, j) = static_cast<double>(1 + i % 3); });
  };
  for (int n = 0; n < bad; ++n) {
    reset();
    EXPECT_PART(error_of([&] { step.run(1); }), first ? "sweep 'add'" : "sweep 'follow'");
    EXPECT_EQ(step.slot(), 0);
    EXPECT_EQ(step.time(), 0);
  }
  greedy = false;
  for (int n = 0; n < 2; ++n) {
    reset();
    step.run(1);
    EXPECT_EQ(step.time(), n + 1);
    sums.push_back(step.reduced().front());
  }
  return sums;
}

TEST(Guard, AStepperGoesOnWithTheRightNumbersAfterARefusal) {
  for (const ReduceMode mode : {ReduceMode::blocking, ReduceMode::nonblocking, ReduceMode::deferred})
    for (const bool first : {true, false}) {
      const auto sums = sums_after(0, mode, first);
      double mine = 0, all = 0;
      const auto grid = torus();
      each_cell(grid, 0, [&](auto i, auto) { mine += static_cast<double>(1 + i % 3); });
      MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      EXPECT_EQ(sums, (std::vector<double>{all, all}));
      for (const int bad : {1, 3}) EXPECT_EQ(sums_after(bad, mode, first), sums) << to_word(mode) << first << bad;
    }
}

}  // namespace
}  // namespace haloscope
