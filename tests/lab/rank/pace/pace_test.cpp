// The pace of the machine: the time that a launch may spend on it, and a meter's results.
#include "haloscope/rank/pace/pace.hpp"

#include <gtest/gtest.h>

#include "haloscope/comm/cores.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

TEST(PaceBudget, AShortLaunchHasNoTimeForASetUp) {
  EXPECT_EQ((PaceSpent{.elapsed_s = 0.27}.affordable()), 0);  // 1.8 % are 5 ms, the set-up alone takes as long
  EXPECT_EQ((PaceSpent{.elapsed_s = 0.4}.affordable()), 2);
  EXPECT_EQ((PaceSpent{.elapsed_s = 0.01, .planned_s = 0.4}.affordable()), 2);
}

TEST(PaceBudget, RoundsAreTimedWhileTheyCostNoMoreThanTheShare) {
  for (double elapsed = 0.1; elapsed < 50; elapsed *= 1.1) {
    PaceSpent spent{.elapsed_s = elapsed};
    const double round_s = 0.8e-3;  // cheaper than estimated
    spent.spent_s = spent.affordable() > 0 ? guessed_setup_s : 0;
    for (int rounds = 0; (rounds = spent.affordable()) > 0;) {
      spent.rounds += rounds;
      spent.spent_s += rounds * round_s;
    }
    EXPECT_LE(spent.spent_s, pace_share * elapsed + 1e-12) << elapsed;
  }
}

TEST(PaceBudget, ARoundDearerThanGuessedIsLearntAfterAFew) {
  PaceSpent spent{.elapsed_s = 1};  // 18 ms
  spent.spent_s = guessed_setup_s;
  EXPECT_EQ(spent.affordable(), few_rounds);
  spent.rounds += few_rounds;
  spent.spent_s += few_rounds * 10e-3;
  EXPECT_EQ(spent.affordable(), 0);
}

class PaceMeterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MPI_Comm_rank(MPI_COMM_WORLD, &session.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &session.size);
  }
  bool crowded() const { return more_ranks_than_cores(MPI_COMM_WORLD); }
  Session session;
};

TEST_F(PaceMeterTest, SaysTheTimesOfWhatItsRanksCanDo) {
  if (crowded()) GTEST_SKIP() << "ranks share cores";
  PaceMeter meter(session, now_s() - 10, 0);
  EXPECT_TRUE(meter.latest().is_null());
  meter.keep_up();
  const nlohmann::json pace = meter.latest();
  if (session.rank != 0) return;
  EXPECT_EQ(pace["ranks"], session.size);
  EXPECT_GE(pace["rounds"], few_rounds);
  for (const char* name : {"compute_s", "memory_s"}) EXPECT_GT(pace[name].get<double>(), 0) << name;
  for (const char* name : {"latency_s", "bandwidth_s"}) EXPECT_EQ(pace.contains(name), session.size > 1) << name;
  EXPECT_FALSE(pace.contains("far_latency_s"));  // one node
  EXPECT_EQ(pace["error"].size(), session.size > 1 ? 4 : 2);
}

TEST_F(PaceMeterTest, SaysNothingWhereRanksShareCores) {
  if (!crowded()) GTEST_SKIP() << "every rank has a core";
  PaceMeter meter(session, now_s() - 10, 0);
  meter.keep_up();
  EXPECT_TRUE(meter.latest().is_null());
  EXPECT_THROW(meter.run_for(0.001), UnavailableError);
}

TEST_F(PaceMeterTest, KeepsTheRoundsOfTwoStops) {
  if (crowded()) GTEST_SKIP() << "ranks share cores";
  PaceMeter meter(session, now_s() - 1000, 0);
  for (int stop = 0; stop < 3; ++stop) meter.keep_up();
  const nlohmann::json pace = meter.latest();
  if (session.rank == 0) {
    EXPECT_EQ(pace["rounds"], 2 * stop_rounds);
  }
}

TEST(PaceRequest, IsRefusedWithTheReason) {
  EXPECT_THROW(pace_request({{"ranks", 3}}, "pace", 2), UsageError);
  EXPECT_THROW(pace_request({{"seconds", 0}}, "pace", 2), UsageError);
  EXPECT_THROW(pace_request({{"seconds", "long"}}, "pace", 2), UsageError);
  EXPECT_THROW(pace_request({{"depth", 1}}, "pace", 2), UsageError);
  EXPECT_EQ(pace_request({{"ranks", 2}}, "pace", 2).seconds, 1);
}

}  // namespace
}  // namespace haloscope
