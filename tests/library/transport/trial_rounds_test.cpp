// The winner of trial rounds, by times made up here.
#include "haloscope/transport/trial_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "allocation_counter.hpp"

namespace haloscope::test {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

struct Times {
  double exchange, step;
};

/// Runs one round, whose times `draw` makes.
void run_heat(TrialRounds& race, const std::function<Times(int candidate)>& draw) {
  const std::vector<int> order(race.order().begin(), race.order().end());
  for (int candidate : order)
    for (int i = 0; i < timed_exchanges; ++i) {
      const Times t = draw(candidate);
      race.add(candidate, t.exchange, t.step);
    }
  race.judge();
}

/// Runs a race to its end; returns its rounds.
int run(TrialRounds& race, const std::function<Times(int candidate)>& draw) {
  int rounds = 0;
  for (; !race.over(); ++rounds) run_heat(race, draw);
  return rounds;
}

TEST(TrialRounds, TheShortestExchangeWinsInOneHeatWhereNothingDisturbs) {
  TrialRounds race(3, {}, 1);
  EXPECT_EQ(run(race, [](int c) { return Times{3.0 - c, 10.0 - c}; }), 1);
  EXPECT_EQ(race.leader(), 2);
  EXPECT_EQ(race.second(), 1);
  EXPECT_EQ(race.exchange(2), 1);
  EXPECT_EQ(race.step(0), 10);
}

TEST(TrialRounds, TheFirstWinsWhereOthersAreFasterByLessThanTheTolerance) {
  TrialRounds race(3, {}, 1);
  EXPECT_EQ(run(race, [](int c) { return Times{1 - 0.005 * c, 10}; }), 1);
  EXPECT_EQ(race.leader(), 0);
}

TEST(TrialRounds, ACandidateWithLongStepsIsOutHoweverShortItsExchange) {
  TrialRounds race(2, {}, 1);
  EXPECT_EQ(run(race, [](int c) { return c == 0 ? Times{2, 10} : Times{1, 11}; }), 1);
  EXPECT_EQ(race.leader(), 0);
}

TEST(TrialRounds, TheExchangeDecidesWhereStepsCannotBeToldApart) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(100, 5);
  TrialRounds race(2, {}, 1);
  run(race, [&](int c) { return Times{2.0 - c, noise(random)}; });
  EXPECT_EQ(race.leader(), 1);
}

TEST(TrialRounds, AClearLoserIsOutAndTheOthersGoOnToTheLastHeat) {
  std::mt19937 random(6);
  std::normal_distribution<double> noise(0, 0.2);
  const TrialLimits limits{3, 4};
  TrialRounds race(3, limits, 1);
  EXPECT_EQ(race.order().size(), 9u);
  const auto draw = [&](int c) { return Times{(c == 1 ? 9 : 1) + noise(random), 20 + noise(random)}; };
  run_heat(race, draw);
  EXPECT_EQ(race.order().size(), 6u);
  EXPECT_EQ(std::count(race.order().begin(), race.order().end(), 1), 0);
  EXPECT_EQ(run(race, draw), limits.rounds - 1);
  EXPECT_NE(race.leader(), 1);
}

TEST(TrialRounds, EveryCandidateHasItsTurnsInChangingOrdersThatAreTheSameOnAllRanks) {
  std::set<std::vector<int>> orders;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const TrialRounds here(4, {2, 1}, seed), there(4, {2, 1}, seed);
    const std::vector<int> order(here.order().begin(), here.order().end());
    EXPECT_TRUE(std::equal(order.begin(), order.end(), there.order().begin(), there.order().end()));
    for (int half : {0, 4}) EXPECT_EQ(std::set<int>(order.begin() + half, order.begin() + half + 4).size(), 4u);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST(TrialRounds, ExchangesThatNeverEndedAreLeftOut) {
  for (const auto& [unfinished, winner] : {std::pair{2, 1}, {3, 0}}) {  // of four, of the faster candidate
    TrialRounds race(2, {1, 1}, 1);
    int made = 0;
    run(race, [&, unfinished = unfinished](int c) {
      return c == 0 ? Times{5, 10} : Times{made++ < unfinished ? never : 1, 10};
    });
    EXPECT_EQ(race.leader(), winner);
  }
  TrialRounds race(2, {1, 1}, 1);
  run(race, [](int) { return Times{never, 10}; });
  EXPECT_EQ(race.leader(), 0);
}

TEST(TrialRounds, JudgingAllocatesNothing) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(10, 1);
  TrialRounds race(5, {}, 1);
  const std::int64_t before = allocations();
  while (!race.over()) {
    const auto turns = race.order().size();
    for (std::size_t turn = 0; turn < turns; ++turn)
      for (int i = 0; i < timed_exchanges; ++i) race.add(race.order()[turn], noise(random), 5 * noise(random));
    race.judge();
  }
  EXPECT_EQ(allocations() - before, 0);
}

/// Five candidates with exchanges between 1 and 1.5 in steps that are four times as long, noise on both, and one
/// exchange in ten disturbed by far more than it takes.
TEST(TrialRounds, WhatIsChosenIsHardlySlowerThanTheBest) {
  for (const double noise : {0.0, 0.02, 0.1}) {
    std::mt19937 random(8);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::normal_distribution<double> normal(0, 1);
    int wrong = 0;
    for (unsigned i = 0; i < 400; ++i) {
      std::vector<double> truth(5);
      for (double& t : truth) t = 1 + 0.5 * uniform(random);
      TrialRounds race(5, {}, i);
      run(race, [&](int c) {
        const double disturbed = uniform(random) < 0.1 ? 50 * uniform(random) : 0;
        const double exchange = truth[c] * std::exp(noise * normal(random)) + disturbed;
        return Times{exchange, exchange + 4 * std::exp(noise * normal(random))};
      });
      const double best = *std::min_element(truth.begin(), truth.end());
      wrong += truth[race.leader()] > 1.05 * best;
    }
    EXPECT_LE(wrong, noise > 0.05 ? 20 : 0) << "noise " << noise;
  }
}

}  // namespace
}  // namespace haloscope::test
