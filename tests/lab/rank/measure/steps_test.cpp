// Numbers of steps that make a repetition last as long as requested, on made-up machines, without a clock; and the
// barriers before clocks are read.
#include "haloscope/rank/measure/steps.hpp"

#include <gtest/gtest.h>

#include <string>

#include "haloscope/rank/measure/measure.hpp"
#include "haloscope/runner/status.hpp"
#include "pmpi_counter.hpp"
#include "world.hpp"

namespace haloscope {
namespace {

/// Time of some steps on a machine that needs `start_s` and then `pace_s` a step.
struct MadeUpMachine {
  double start_s, pace_s;
  double time_of(std::int64_t steps) const { return start_s + pace_s * static_cast<double>(steps); }
};

TEST(Steps, W21_ATrialThatLastedAFifthLongerThanAskedIsTheLast) {
  EXPECT_EQ(next_steps(40, 1.2, 1.0, 1), 40);
  EXPECT_EQ(next_steps(40, 7.0, 1.0, 8), 40);
  EXPECT_GT(next_steps(40, 1.19, 1.0, 1), 40);
}

TEST(Steps, W21_AfterAShortTrialFourTimesAsManyAreTriedAndAfterALongerOneInProportion) {
  EXPECT_EQ(next_steps(10, 1e-6, 1.0, 1), 40);
  EXPECT_EQ(next_steps(10, 0.0, 1.0, 1), 40);
  EXPECT_NEAR(next_steps(100, 0.6, 1.0, 1), 220, 1);  // a tenth more than would do
  EXPECT_EQ(next_steps(9, 1e-6, 1.0, 3), 36);
  EXPECT_EQ(next_steps(8, 0.6, 1.0, 8), 24) << "17.6 steps, in whole exchanges";
}

TEST(Steps, W21_TrialsEndWithOneThatLastsLongEnoughAndLittleLonger) {
  constexpr double wanted_s = 0.1;
  for (const double start_s : {0.0, 1e-3, 0.05, 1.0})
    for (const double pace_s : {1e-8, 3e-6, 1e-3, 0.07, 5.0})
      for (const int depth : {1, 3, 8}) {
        const MadeUpMachine machine{start_s, pace_s};
        std::int64_t steps = 0, next = depth;
        for (int trials = 0; next != steps; ++trials) {
          ASSERT_GT(next, steps);
          ASSERT_EQ(next % depth, 0);
          ASSERT_LT(trials, 40);
          steps = next;
          next = next_steps(steps, machine.time_of(steps), wanted_s, depth);
        }
        EXPECT_GE(machine.time_of(steps) / 1.2, wanted_s * (1 - 1e-12));
        EXPECT_TRUE(steps == depth || machine.time_of(steps) <= 1.1 * 1.2 * wanted_s + (depth + 1) * pace_s)
            << steps << " steps of " << pace_s << " s after " << start_s << " s, depth " << depth;
      }
}

TEST(Steps, W21_TenTimesTheSecondsAreAboutTenTimesTheSteps) {
  const auto chosen = [](double wanted_s) {
    const MadeUpMachine machine{0, 2e-5};
    std::int64_t steps = 0, next = 1;
    while (next != steps) {
      steps = next;
      next = next_steps(steps, machine.time_of(steps), wanted_s, 1);
    }
    return static_cast<double>(steps);
  };
  EXPECT_NEAR(chosen(0.2) / chosen(0.02), 10, 1);
}

/// The number of clock readings behind a barrier while a configuration is measured.
std::int64_t clocks_behind_barriers(int repetitions) {
  Session session;
  session.rank = test::world_rank();
  session.size = test::world_size();
  StatusBoard board("", session.size, session.rank);
  session.board = &board;
  const Request request =
      measurement_request(request_from_words({"laplace2d", "--cells", "16x16", "--steps", "3", "--warmup", "1",
                                              "--repetitions", std::to_string(repetitions)},
                                             {}),
                          "a", session.size);
  const std::int64_t before = test::calls().clocks_behind_barriers;
  measure(session, request);
  return test::calls().clocks_behind_barriers - before;
}

TEST(Steps, W21_ABarrierPrecedesTheClockOfEachRepetition) {
  EXPECT_EQ(clocks_behind_barriers(5) - clocks_behind_barriers(2), 3);
}

}  // namespace
}  // namespace haloscope
