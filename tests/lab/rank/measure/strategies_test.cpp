// Every strategy x schedule x depth x kind of substeps of every app computes the bytes of `reference`, with halos
// poisoned before each exchange. Run at several rank counts: a fixed sample, another one for each problem. With
// HALOSCOPE_LONG set: all of them at up to 3 ranks; at more, where ranks share cores and take long, every strategy x
// schedule x app once, each with another depth, kind of substeps and periodicity.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <map>

#include "app_problem.hpp"
#include "haloscope/error.hpp"
#include "haloscope/rank/measure/run.hpp"

namespace haloscope {
namespace {

using namespace test;

std::uint64_t result(Choice choice, int steps) {
  choice.tiles = 3;
  return checksum_of(choice, steps);
}

/// The legal choices of one strategy and schedule: all depths, kinds of substeps and periodicities.
std::vector<Choice> choices(const AppProblem& problem, const std::string& strategy, const Schedule& schedule) {
  std::vector<Choice> found;
  for (bool periodic : {true, false})
    for (int depth : {1, 2, 3})
      for (Substeps substeps : {Substeps::full, Substeps::shrink, Substeps::blocked}) {
        if (depth == 1 && substeps != Substeps::full) continue;
        Choice c = choice_for(problem, periodic);
        c.strategy = strategy;
        c.schedule = schedule.name;
        c.depth = depth;
        c.substeps = substeps;
        c.threads = schedule.name == "comm-thread" ? 2 : 1;
        c.sharing = depth == 2 ? Sharing::dynamic : Sharing::guided;
        if (illegal(c).empty()) found.push_back(c);
      }
  return found;
}

/// Selects the choices of a problem that run, strategy by strategy; see above.
class Sample {
 public:
  explicit Sample(const AppProblem& problem) : number_(static_cast<int>(problem.cells[0])) {}

  std::vector<Choice> of(std::vector<Choice> all) {
    std::vector<Choice> kept;
    if (!thorough()) {
      for (const Choice& c : all)
        if (number_++ % stride() == 0) kept.push_back(c);
    } else if (world_size() <= 3 || all.empty()) {
      kept = std::move(all);
    } else {
      kept.push_back(all[static_cast<std::size_t>(number_++) % all.size()]);
    }
    return kept;
  }

 private:
  static int stride() {
    return world_size() <= 2 ? 11 : world_size() <= 4 ? 127 : world_size() <= 7 ? 251 : world_size() <= 8 ? 503 : 1009;
  }
  int number_;
};

void check_problem(const AppProblem& problem) {
  const int steps = 7;
  std::uint64_t expected[2];
  for (int periodic : {0, 1}) {
    Choice reference = choice_for(problem, periodic == 1);
    reference.strategy = "reference";
    expected[periodic] = result(reference, steps);
  }
  Sample sample(problem);
  int legal = 0, ran = 0;
  for (const auto& strategy : strategy_names())
    for (const Schedule* schedule : schedules()) {
      const std::vector<Choice> all = choices(problem, strategy, *schedule);
      legal += static_cast<int>(all.size());
      for (const Choice& c : sample.of(all)) {
        std::uint64_t found = 0;
        if (!run_if_available([&] { found = result(c, steps); })) continue;
        const bool periodic = c.grid.periodic[0];
        ASSERT_EQ(found, expected[periodic]) << strategy << " " << schedule->name << " depth " << c.depth << " "
                                             << to_word(c.substeps) << " periodic " << periodic;
        ASSERT_FALSE(testing::Test::HasFailure());
        ++ran;
      }
    }
  EXPECT_GE(ran, 3) << "the problem is too small for this rank count";
  EXPECT_GT(legal, 100);
}

TEST(Strategies, W11_W12_W13_DenseAdvectionIsByteIdentical) {
  check_problem({"advection3d", "dense", Real::f64, {11, 10, 13}});
}
TEST(Strategies, W11_W12_W13_SeparableAdvectionIsByteIdentical) {
  check_problem({"advection3d", "separable", Real::f64, {12, 9, 14}});
}
TEST(Strategies, V1_V8_V9_V10_Laplace2dFloatIsByteIdentical) {
  check_problem({"laplace2d", "star", Real::f32, {23, 19, 1}});
}
TEST(Strategies, V1_V8_V9_V10_Laplace2dDoubleIsByteIdentical) {
  check_problem({"laplace2d", "star", Real::f64, {29, 17, 1}});
}
TEST(Strategies, Laplace3dDoubleIsByteIdentical) { check_problem({"laplace3d", "star", Real::f64, {10, 12, 11}}); }
TEST(Strategies, Laplace3dFloatIsByteIdentical) { check_problem({"laplace3d", "star", Real::f32, {13, 10, 12}}); }

TEST(Strategies, W10_ThreadsDoNotChangeTheBytes) {
  for (const char* schedule : {"bulk", "split", "interleaved"}) {
    Choice c = choice_for({"advection3d", "dense", Real::f64, {24, 25, 26}}, true);
    c.strategy = "reference";
    const std::uint64_t expected = result(c, 5);
    c.strategy = "ordered/p2p";
    c.schedule = schedule;
    for (int threads : {1, 2, 4}) {
      c.threads = threads;
      EXPECT_EQ(result(c, 5), expected) << schedule << " with " << threads << " threads";
    }
  }
}

TEST(Strategies, OneThreadedAndManyRankedRunsGiveTheSameBytes) {
  // The checksum is over global cells: with one rank it is known from the oracle of the test itself.
  Choice c = choice_for({"laplace2d", "star", Real::f64, {21, 22, 1}}, true);
  const std::uint64_t all = result(c, 6);
  Choice alone = c;
  alone.ranks = 1;
  haloscope::Run run(MPI_COMM_SELF, alone);
  run.initialise();
  run.advance(6);
  EXPECT_EQ(run.checksum(), all);
}

}  // namespace
}  // namespace haloscope
