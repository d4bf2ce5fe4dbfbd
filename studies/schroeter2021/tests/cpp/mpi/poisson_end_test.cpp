// poisson2d to a precision, ranks in different iterations, reference values, subnormal numbers.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "haloscope/core/denormals.hpp"
#include "haloscope/error.hpp"
#include "haloscope/rank/watch/inject.hpp"
#include "link_rig.hpp"
#include "pmpi_counter.hpp"
#include "poisson_rig.hpp"
#include "schroeter2021/app/work_meter.hpp"

namespace haloscope {
namespace {

using namespace test;

TEST(Poisson, SB3_JacobiStopsWhereTheSequentialProgramStops) {
  const Choice c = start_from(choice_of("jacobi", world_size() <= 2 ? 4 : 1), "zero");
  for (double precision : {5e-2, 8e-3, 3e-3})
    for (const char* scheme : {"deferred", "allreduce"}) {
      Sequential expected(c);
      std::int64_t count = 1;
      double residual = expected.iterate();
      for (; residual >= precision; ++count) residual = expected.iterate();
      const Solved s = solve(until(c, precision, scheme), 100000);
      EXPECT_EQ(s.progress.steps, count) << scheme << " " << precision;
      EXPECT_EQ(s.residual, residual) << scheme << " " << precision;
      EXPECT_TRUE(s.progress.finished);
      expect_same_field(*s.run, expected, scheme);
    }
}

/// Gauss-Seidel to a precision: every rank ends with the field of iteration k', not far beyond the sequential k.
void expect_pipeline_stop(const Choice& choice, const std::string& scheme, double precision,
                          const RunnerOptions& options = {}) {
  const Choice c = start_from(choice, "zero");
  Sequential expected(c);
  std::int64_t sequential = 1;
  double residual = expected.iterate();
  for (; residual >= precision; ++sequential) residual = expected.iterate();
  const Solved s = solve(until(c, precision, scheme), 100000, options);
  EXPECT_GE(s.progress.steps, sequential) << scheme;
  EXPECT_LE(s.progress.steps, sequential + 2 * (world_size() - 1) + 2) << scheme;
  EXPECT_TRUE(s.progress.finished);
  for (std::int64_t k = sequential; k < s.progress.steps; ++k) residual = expected.iterate();
  EXPECT_EQ(s.residual, residual) << scheme << " after " << s.progress.steps;
  expect_same_field(*s.run, expected, scheme);
}

TEST(Poisson, SB4_SD1_SD2_SD3_EverySchemeStopsThePipelineInOneIteration) {
  for (const auto& scheme : reduction_schemes())
    for (double precision : {3e-2, 5e-3}) expect_pipeline_stop(choice_of("gauss-seidel", 1), scheme.name, precision);
}

/// Returns the iteration in which the last rank decides to stop, by its answers to rank 0; 0 on other ranks.
std::int64_t decided(const Choice& choice) {
  std::vector<double> answers;
  on_isend() = [&](const void* data, int count, MPI_Datatype type, int to, int tag) {
    if (to == 0 && tag == 1 && count == 1 && type == MPI_DOUBLE) answers.push_back(*static_cast<const double*>(data));
  };
  const Solved s = solve(choice, 100000);
  on_isend() = {};
  if (world_rank() + 1 < world_size()) return 0;
  EXPECT_EQ(static_cast<std::int64_t>(answers.size()), s.progress.steps) << "an answer for each iteration";
  return std::find(answers.begin(), answers.end(), 1.0) - answers.begin() + 1;
}

TEST(Poisson, SD1_SD2_SD3_EverySchemeDecidesInTheSameIteration) {
  if (world_size() == 1) GTEST_SKIP() << "one rank sends no decision";
  for (double precision : {3e-2, 5e-3}) {
    const Choice c = start_from(choice_of("gauss-seidel", 1), "zero");
    Sequential expected(c);
    std::int64_t iteration = 1;
    while (expected.iterate() >= precision) ++iteration;
    for (const auto& scheme : reduction_schemes()) {
      const std::int64_t found = decided(until(c, precision, scheme.name));
      EXPECT_EQ(found, world_rank() + 1 < world_size() ? 0 : iteration) << scheme.name << " " << precision;
    }
  }
}

TEST(Poisson, SE5_APassiveLinkCarriesLinesBetweenNodes) {
  if (world_size() < 2) GTEST_SKIP() << "one rank has no second node";
  const auto nodes = emulated_nodes(world_size(), 2, Placement::block);
  const auto node = [&](int rank) { return nodes[static_cast<std::size_t>(std::clamp(rank, 0, world_size() - 1))]; };
  const int here = world_rank();
  const bool at_border = node(here - 1) != node(here) || node(here) != node(here + 1);
  for (const char* strategy : {"ordered/shared+rma-lock:get", "ordered/shared:packed+rma-lockall:get"})
    for (const char* scheme : {"chain", "all-to-last"}) {
      Choice c = choice_of("gauss-seidel", 1);
      c.strategy = strategy;
      c.nodes = 2;
      const std::int64_t before = calls().gets;
      expect_pipeline_stop(c, scheme, 5e-3);
      EXPECT_EQ(calls().gets > before, at_border) << strategy << " " << scheme;
    }
}

TEST(Poisson, SE5_LinksInSharedMemoryGoWithResidualsInMessages) {
  for (const char* strategy : {"ordered/shared", "ordered/shared:packed", "ordered/shared+rma-lockall"})
    for (const char* scheme : {"chain", "all-to-last"}) {
      Choice c = choice_of("gauss-seidel", 1);
      c.strategy = strategy;
      expect_pipeline_stop(c, scheme, 5e-3);
    }
}

TEST(Poisson, SB4_TheStopHoldsUnderDelaysOfAnyRank) {
  for (int slow = 0; slow < world_size(); ++slow)
    for (const auto& scheme : reduction_schemes()) {
      if (world_size() > 7 || (world_size() > 4 && scheme.name != "chain")) continue;
      Fault fault = Fault::parse("delay:rank=0,step=-1,seconds=0.001,op=sweep");
      RunnerOptions options;
      if (world_rank() == slow) options.injection = {&Fault::before, &fault};
      expect_pipeline_stop(choice_of("gauss-seidel", 0), scheme.name, 1e-2, options);
    }
}

TEST(Poisson, SD3_SlotsAreReusedSafelyOverManyIterations) {
  const std::int64_t iterations = 4 * world_size() + 9;
  const Choice c = start_from(choice_of("gauss-seidel", 1), "random");
  Sequential expected(c);
  const double residual = expected.residual_after(iterations);
  const Solved s = solve(until(c, 1e-300, "accumulate"), iterations);  // never reached: collects each iteration's
  EXPECT_EQ(s.progress.steps, iterations);
  EXPECT_EQ(s.residual, residual);
  EXPECT_FALSE(s.progress.finished);
  expect_same_field(*s.run, expected, "accumulate");
}

TEST(Poisson, SD2_TheChainSendsOneMessagePerRankAndIteration) {
  const Choice c = start_from(choice_of("gauss-seidel", 1), "random");
  const auto messages = [&](std::int64_t iterations, double precision) {
    test::sent() = {};
    solve(until(c, precision, "chain"), iterations);
    return test::sent().messages;
  };
  const std::int64_t without = messages(30, 0) - messages(10, 0);
  const std::int64_t with = messages(30, 1e-300) - messages(10, 1e-300);
  EXPECT_EQ(with - without, world_size() > 1 ? 20 : 0);
}

TEST(Poisson, SD2_TheOneSidedChainPutsOnePerRankAndIteration) {
  const Choice c = start_from(choice_of("gauss-seidel", 1), "random");
  const auto puts = [&](std::int64_t iterations) {
    const std::int64_t before = calls().puts;
    solve(until(c, 1e-300, "chain-pscw"), iterations);
    return calls().puts - before;
  };
  const std::int64_t few = puts(10);
  EXPECT_EQ(puts(30) - few, world_rank() + 1 < world_size() ? 20 : 0);
}

/// Lets the last rank begin an iteration only when rank 0 has begun the next one.
struct FollowedByTheLast {
  static constexpr std::int64_t iterations = 8;
  std::int64_t latest = -1, held = 0;
  static void before(void* self, const Op& op, std::int64_t iteration) {
    auto& mine = *static_cast<FollowedByTheLast*>(self);
    if (op.kind != OpKind::sweep || iteration == mine.latest) return;
    mine.latest = iteration;
    const int last = world_size() - 1;
    if (world_rank() == 0 && iteration > 0) MPI_Send(nullptr, 0, MPI_BYTE, last, 98, MPI_COMM_WORLD);
    if (world_rank() != last || iteration == iterations - 1) return;
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++mine.held;
  }
};

// In step, ranks would deadlock here.
TEST(Poisson, SB2_RanksAreInDifferentIterationsAtOneTime) {
  if (world_size() == 1) GTEST_SKIP() << "one rank has nobody to be ahead of";
  FollowedByTheLast followed;
  RunnerOptions options;
  options.trace_events = 100000;
  options.injection = {&FollowedByTheLast::before, &followed};
  const Solved s = solve(start_from(choice_of("gauss-seidel", 1), "random"), 8, options);
  if (world_rank() == world_size() - 1) {
    EXPECT_EQ(followed.held, 7);
  }
  std::vector<double> begin(8, 1e300);  // of this rank's first sweep of each iteration
  for (const Runner* runner : s.run->runners())
    for (const TraceEvent& e : runner->trace())
      if (runner->program().ops[e.op].kind == OpKind::sweep) begin[e.step] = std::min(begin[e.step], e.begin_s);
  std::vector<double> all(8 * world_size());
  MPI_Allgather(begin.data(), 8, MPI_DOUBLE, all.data(), 8, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int k = 1; k < 8; ++k) EXPECT_LT(all[k], all[8 * (world_size() - 1) + k]) << "the last rank leads in " << k;
}

TEST(Poisson, SH2_EveryLineIsMeteredInOneOfSoManyEvenBlocks) {
  for (const std::int64_t lines : {7, 48, 49, 1127})
    for (const int blocks : {1, 3, 7}) {
      WorkMeter meter;
      meter.lines = lines;
      meter.blocks = blocks;
      EXPECT_EQ(meter.first_line(0), 0);
      EXPECT_EQ(meter.first_line(blocks), lines);
      for (std::int64_t line = 0; line < lines; ++line) {
        const int block = meter.block_of(line);
        EXPECT_LE(meter.first_line(block), line);
        EXPECT_GT(meter.first_line(block + 1), line);
        EXPECT_LE(meter.first_line(block + 1) - meter.first_line(block), lines / blocks + 1);
        EXPECT_GE(meter.first_line(block + 1) - meter.first_line(block), lines / blocks);
      }
    }
}

TEST(Poisson, SH2_MeteredSecondsAreAddedUpByWindowAndBlock) {
  WorkMeter meter;
  meter.blocks = 3;
  meter.window = 10;
  meter.lines = 9;
  for (std::int64_t iteration = 0; iteration < 25; ++iteration) meter.add(iteration, 1, 0.5);
  meter.add(0, 2, 4);
  EXPECT_EQ(meter.seconds, (std::vector<double>{0, 5, 4, 0, 5, 0, 0, 2.5, 0}));
}

TEST(Poisson, SH2_SubnormalNumbersAreCountedAlsoWhileTheyAreTakenAsZero) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> values{0.0,   -0.0,   Limits::denorm_min(), -Limits::min() / 2, Limits::min(), 1,
                                   -1e99, 1e-310, Limits::infinity(),   Limits::quiet_NaN()};
  EXPECT_EQ(count_subnormal(values), 3);
  const FlushToZero flushing(true);
  EXPECT_EQ(count_subnormal(values), 3);
}

TEST(Poisson, SH2_NumbersAreCountedAfterTheLastIterationOfEachWindow) {
  WorkMeter meter;
  meter.blocks = 2;
  meter.window = 10;
  const std::vector<double> line{1e-310, 1, 1e-310};
  for (std::int64_t iteration = 0; iteration < 25; ++iteration) meter.count(iteration, 1, 1, line);
  EXPECT_EQ(meter.subnormal, (std::vector<double>{0, 2, 0, 2}));
  meter.subnormal.clear();
  for (std::int64_t iteration = 0; iteration < 24; iteration += 4) meter.count(iteration, 4, 0, line);
  EXPECT_EQ(meter.subnormal, (std::vector<double>{2, 0, 2, 0})) << "sweeps of four iterations that pass 10 and 20";
}

TEST(Poisson, ThreadsDoNotChangeTheBytes) {
  for (const char* method : {"jacobi", "gauss-seidel"})
    for (int threads : {2, 3}) {
      Choice c = choice_of(method, 2);
      c.threads = threads;
      if (world_size() <= 2) expect_sequential(c, 5, 2);
    }
}

// ---- reference values (7 digits) ------------------------------------------------------------------------------------

struct Reference {
  const char* method;
  std::int64_t interlines;
  int function;
  std::int64_t iterations;
  double precision, residual;
  bool slow;
};

TEST(Poisson, SA3_SA5_ReferenceValuesToSevenDigits) {
  const Reference values[] = {
      {"jacobi", 0, 1, 10, 0, 2.581787e-02, false},
      {"jacobi", 0, 2, 10, 0, 3.781185e-02, false},
      {"gauss-seidel", 0, 1, 10, 0, 2.984447e-02, false},
      {"gauss-seidel", 0, 2, 10, 0, 3.752985e-02, false},
      {"jacobi", 10, 1, 1000, 0, 2.332824e-04, true},
      {"jacobi", 10, 2, 1000, 0, 3.371101e-04, true},
      {"gauss-seidel", 10, 1, 1000, 0, 2.832813e-04, true},
      {"gauss-seidel", 10, 2, 1000, 0, 3.567021e-04, true},
      {"jacobi", 30, 1, 500, 0, 6.475146e-04, true},
      {"jacobi", 50, 1, 500, 0, 6.758782e-04, true},
      {"gauss-seidel", 30, 1, 500, 0, 6.378240e-04, true},
      {"gauss-seidel", 50, 1, 500, 0, 6.790967e-04, true},
      {"jacobi", 100, 1, 100, 0, 3.544251e-03, true},
      {"jacobi", 10, 1, 2570, 1e-4, 9.991622e-05, true},
      {"jacobi", 10, 2, 2907, 1e-4, 9.997606e-05, true},
      {"jacobi", 10, 1, 17028, 1e-8, 9.990392e-09, true},
      {"jacobi", 10, 2, 17357, 1e-8, 9.999971e-09, true},
      {"jacobi", 30, 1, 23312, 1e-5, 9.999860e-06, true},
      {"gauss-seidel", 10, 1, 1833, 1e-4, 9.997393e-05, true},
      {"gauss-seidel", 10, 2, 1998, 1e-4, 9.995439e-05, true},
      {"gauss-seidel", 10, 1, 9059, 1e-8, 9.989966e-09, true},
      {"gauss-seidel", 10, 2, 9223, 1e-8, 9.997805e-09, true},
      {"gauss-seidel", 30, 1, 15988, 1e-5, 9.999120e-06, true},
  };
  for (const Reference& v : values) {
    if ((v.slow && world_size() > 2) || (v.interlines == 0 && world_size() > 7)) continue;
    const Choice c = choice_of(v.method, v.interlines);
    const std::int64_t limit = v.precision > 0 ? 200000 : v.iterations;
    const Solved s = solve(until(start_from(c, "zero", v.function), v.precision, ""), limit);
    const bool exact = v.precision == 0 || c.form == "jacobi" || world_size() == 1;
    if (exact) {
      EXPECT_EQ(s.progress.steps, v.iterations) << v.method << " " << v.interlines;
      EXPECT_NEAR(s.residual, v.residual, 0.6e-6 * v.residual) << v.method << " " << v.interlines;
    } else {
      EXPECT_GE(s.progress.steps, v.iterations);
      EXPECT_LE(s.progress.steps, v.iterations + 2 * (world_size() - 1) + 2);
      EXPECT_LT(s.residual, v.precision);
    }
  }
}

TEST(Poisson, SA2_Function2ConvergesToTheExactSolution) {
  if (world_size() > 2) GTEST_SKIP() << "thousands of short iterations: left to few ranks";
  const struct {
    const char* method;
    double error;
  } cases[] = {{"jacobi", 9.05e-5}, {"gauss-seidel", 9.84e-5}};
  for (const auto& one : cases) {
    const Solved s = solve(until(start_from(choice_of(one.method, 10), "zero", 2), 1e-8, ""), 200000);
    const Box owned = s.run->layout().owned(world_rank());
    double worst = 0;
    const double h = 1.0 / 88;
    for (std::int64_t y = owned.lo[1]; y < owned.hi[1]; ++y)
      for (std::int64_t x = owned.lo[0]; x < owned.hi[0]; ++x)
        worst = std::max(worst, std::abs(s.run->value({x - owned.lo[0], y - owned.lo[1], 0}) -
                                         std::sin(std::numbers::pi * h * static_cast<double>(x + 1)) *
                                             std::sin(std::numbers::pi * h * static_cast<double>(y + 1))));
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_LT(worst, 1.0e-4);
    EXPECT_NEAR(worst, one.error, world_size() == 1 ? 0.006e-5 : 0.06e-5) << one.method;
  }
}

TEST(Poisson, SH3_FlushToZeroLeavesTheResidualAndMovesTheFieldByLessThan1e300) {
  if (world_size() > 2) GTEST_SKIP() << "a large grid: left to few ranks";
  for (const std::string method : {"jacobi", "gauss-seidel"}) {
    // Each point further is a quarter: subnormal numbers are 512 points and more from the border. Jacobi gets one point
    // further in an iteration, Gauss-Seidel a whole line.
    const Choice c = start_from(choice_of(method, 140), "zero");
    const std::int64_t iterations = method == "jacobi" ? 530 : 10;
    Choice flushed = c;
    flushed.ftz = true;
    const Solved usual = solve(c, iterations), zero = solve(flushed, iterations);
    EXPECT_EQ(usual.residual, zero.residual) << method;
    double worst = 0;
    std::int64_t subnormal = 0, left = 0;
    const Box all = usual.run->plan().owned(0);
    for (std::int64_t y = 0; y < all.hi[1]; ++y)
      for (std::int64_t x = 0; x < all.hi[0]; ++x) {
        const double a = usual.run->value({x, y, 0}), b = zero.run->value({x, y, 0});
        worst = std::max(worst, std::abs(a - b));
        subnormal += std::fpclassify(a) == FP_SUBNORMAL;
        left += std::fpclassify(b) == FP_SUBNORMAL;
      }
    MPI_Allreduce(MPI_IN_PLACE, &subnormal, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_LT(worst, 1e-300) << method;
    EXPECT_EQ(left, 0) << method;
    EXPECT_GT(subnormal, 0) << method << ": the case holds nothing to flush";
  }
}

TEST(Poisson, PrecisionWithDeepHalosIsRefusedWithTheReason) {
  Choice c = choice_of("jacobi", 3);
  c.depth = 2;
  EXPECT_NE(illegal(until(c, 1e-4, "")).find("--depth 1"), std::string::npos) << illegal(until(c, 1e-4, ""));
  EXPECT_EQ(illegal(until(c, 0, "")), "");
  EXPECT_NE(illegal(until(choice_of("jacobi", 3), 1e-4, "chain")).find("Jacobi"), std::string::npos);
  EXPECT_NE(illegal(until(choice_of("gauss-seidel", 3), 1e-4, "allreduce")).find("Gauss-Seidel"), std::string::npos);
}

}  // namespace
}  // namespace haloscope
