// Candidates that the model can distinguish, the simplest of them, their bounds, and their held-out intervals.
#include "haloscope/model/groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "haloscope/model/sampling.hpp"

namespace haloscope::model {
namespace {

/// A step that computes and spends the rest on messages.
Prediction taking(double compute, double rest) {
  Prediction p;
  p.time_s = compute + rest;
  p.terms[static_cast<std::size_t>(Term::compute)] = compute;
  p.terms[static_cast<std::size_t>(Term::message)] = rest;
  p.bound = "latency-bound";
  return p;
}

Profile wrong_by(double compute, double exchange) {
  Profile profile;
  profile.compute_discrepancy = compute;
  profile.exchange_discrepancy = exchange;
  return profile;
}

TEST(Groups, WhatBothComputeAlikeTellsNothing) {
  const Profile profile = wrong_by(0.2, 0.1);
  EXPECT_TRUE(can_tell(taking(100, 1), taking(100, 2), profile));     // the exchange has an error of 10 %
  EXPECT_FALSE(can_tell(taking(100, 10), taking(100, 11), profile));  // 10 % of 11 are more than the difference
  EXPECT_TRUE(can_tell(taking(100, 1), taking(110, 1), profile));     // 20 % of 10, not of 100
  EXPECT_FALSE(can_tell(taking(100, 1), taking(110, 1), wrong_by(0.7, 0.1)));
}

TEST(Groups, WithoutADiscrepancyAnyDifferenceTellsBeyondTheMargin) {
  EXPECT_TRUE(can_tell(taking(100, 1), taking(100, 1.01), {}));
  EXPECT_FALSE(can_tell(taking(100, 1), taking(100, 1), {}));
  EXPECT_FALSE(can_tell(taking(100, 1), taking(100, 1.01), {}, 0.05));
}

TEST(Groups, EachIsOfThoseThatCannotBeToldFromItsFastest) {
  std::vector<Prediction> all;
  for (const double rest : {1.0, 1.01, 1.3, 2.0, 2.02, 9.0}) all.push_back(taking(0, rest));
  std::vector<const Prediction*> pointers;
  for (const Prediction& p : all) pointers.push_back(&p);
  const std::vector<char> none(all.size(), 0);
  EXPECT_EQ(group(pointers, none, wrong_by(0, 0.05)), (std::vector<int>{0, 0, 1, 2, 2, 3}));
  std::vector<char> third = none;
  third[2] = 1;  // by the samples
  EXPECT_EQ(group(pointers, third, wrong_by(0, 0.05)), (std::vector<int>{0, 0, 0, 1, 1, 2}));
}

TEST(Groups, TheSimplestHasFewestOptionsThenTheFirstTransport) {
  const auto named = [](const char* strategy, int depth = 1, const char* schedule = "bulk") {
    Choice c{.schedule = schedule, .strategy = strategy, .depth = depth};
    return c;
  };
  const std::vector<Choice> ranked{named("ordered/p2p"),       named("direct/p2p"),
                                   named("ordered/rma-fence"), named("ordered:merged/p2p"),
                                   named("ordered/p2p", 2),    named("ordered:merged/shared:pull", 4, "split")};
  for (std::size_t a = 0; a < ranked.size(); ++a)
    for (std::size_t b = 0; b < ranked.size(); ++b) EXPECT_EQ(is_simpler(ranked[a], ranked[b]), a < b) << a << " " << b;
}

TEST(Regime, IsTheLargestTerm) {
  EXPECT_EQ(regime_of(taking(2, 1), false), "compute-bound");
  EXPECT_EQ(regime_of(taking(2, 1), true), "latency-bound");
  EXPECT_EQ(regime_of(taking(1, 2), false), "latency-bound");
  Prediction waits = taking(1, 1);
  waits.terms[static_cast<std::size_t>(Term::wait)] = 5;
  EXPECT_EQ(regime_of(waits, false), "imbalance");
}

TEST(HeldOut, TheRegimeCountsAndWithoutItAll) {
  const HeldOut residuals{{"all", {100, -0.1, 0.2}}, {"latency-bound", {30, 0, std::log(2)}}};
  const auto own = held_out_interval(residuals, "latency-bound", 3);
  EXPECT_NEAR(own->ends[0], 3, 1e-12);
  EXPECT_NEAR(own->ends[1], 6, 1e-12);
  EXPECT_EQ(held_out_interval(residuals, "imbalance", 3)->regime, "all");
  EXPECT_FALSE(held_out_interval({}, "imbalance", 3));
}

}  // namespace
}  // namespace haloscope::model
