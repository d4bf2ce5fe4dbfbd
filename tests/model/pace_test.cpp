// Profiles at another pace, by hand; whole predictions at another pace are tested from Python, test_pace.py.
#include <gtest/gtest.h>

#include "haloscope/error.hpp"
#include "haloscope/model/profile.hpp"
#include "toy_profile.hpp"

namespace haloscope::model {
namespace {

constexpr double near_by = 1e-12;

Pace pace_of(std::initializer_list<double> seconds, double error = 0) {
  Pace pace{2, {}};
  std::size_t kind = 0;
  for (const double s : seconds) pace.times[kind++] = PaceTime{s, error};
  return pace;
}

Profile paced() {
  Profile profile = read_profile(test::toy_profile());
  profile.paces[2] = pace_of({1, 1, 1, 1});
  profile.kernels->clear();
  (*profile.kernels)["a/b/f64"][1] = {{0, 100, {1, 0.1}, {2, 0.4}}, {100, infinity, {-99, 1}, {3, 0.6}}};
  profile.streaming["a/b/f64"][1] = {{0, infinity, {0, -1}, {6, 0.6}}};
  profile.steps.per_program_s = {1, 0.1};
  profile.steps.waiting_share = {0.1, 0.01};
  return profile;
}

TEST(PaceRatios, ADifferenceWithinItsErrorIsNone) {
  const PaceRatios same = pace_ratios(pace_of({1, 2}), pace_of({1.03, 2}, 0.03));
  EXPECT_EQ(same[0], 1);
  EXPECT_EQ(same[1], 1);
  const PaceRatios clear = pace_ratios(pace_of({1}), pace_of({1.5}, 0.01));
  EXPECT_NEAR(clear[0], 1.5, 0.001);
  EXPECT_LT(clear[0], 1.5);
  EXPECT_NEAR(pace_ratios(pace_of({1}), pace_of({0.5}))[0], 0.5, near_by);
  EXPECT_EQ(clear[2], 1);  // not known
}

TEST(AtPace, CostsFollowTheKernelThatIsLikeThem) {
  const Profile before = paced();
  const Profile now = at_pace(before, pace_of({2, 3, 5, 7}));
  const auto cost = [](const Profile& p, std::size_t segment) { return (*p.kernels).at("a/b/f64").at(1)[segment]; };
  EXPECT_NEAR(cost(now, 0).slope, 2 * 2, near_by);          // in the cache: arithmetic
  EXPECT_NEAR(cost(now, 1).slope, 2 * 2 + 3 * 1, near_by);  // beyond it: the additional time is memory's
  EXPECT_NEAR(cost(now, 1).fixed, 2 * 1 + 3 * -100, near_by);
  EXPECT_NEAR(cost(now, 0).slope.width, 2 * 0.4, near_by);
  EXPECT_NEAR(now.streaming.at("a/b/f64").at(1).front().slope, 2 * 2 + 3 * 4, near_by);
  EXPECT_NEAR(now.steps.per_program_s, 2, near_by);
  EXPECT_EQ(now.steps.waiting_share, 0.1);  // a share of sweeps, which are scaled already
  const auto message = [](const Profile& p, Locality near) {
    return p.network->by_locality[static_cast<std::size_t>(near)]->segments.front();
  };
  EXPECT_NEAR(message(now, Locality::socket).fixed, 5 * message(before, Locality::socket).fixed, near_by);
  EXPECT_NEAR(message(now, Locality::socket).slope, 7 * message(before, Locality::socket).slope, near_by);
  EXPECT_EQ(message(now, Locality::network).fixed.value, message(before, Locality::network).fixed.value);
  EXPECT_EQ(now.pace_ratios[3], 7);
}

TEST(AtPace, MessagesOfRanksAloneOnTheirNodesAreThoseBetweenNodes) {
  Profile profile = paced();
  profile.transports["persistent"].per_message_s = {1, 0.1};
  Pace then = pace_of({1, 1}), now = pace_of({1, 1});
  then.times[static_cast<std::size_t>(PaceKind::far_latency)] = PaceTime{1, 0};
  now.times[static_cast<std::size_t>(PaceKind::far_latency)] = PaceTime{4, 0};
  profile.paces[2] = then;
  EXPECT_NEAR(at_pace(profile, now).transports.at("persistent").per_message_s, 4, near_by);
}

TEST(AtPace, TheStateOfTheMachineWithTheNearestPaceIsTaken) {
  Profile profile = paced();
  Profile& quick = profile.states.emplace_back(profile);
  quick.paces[2] = pace_of({1, 1, 0.5, 0.25});
  quick.steps.waiting_share = {0.3, 0};
  EXPECT_EQ(at_pace(profile, pace_of({1, 1, 0.9, 0.9})).steps.waiting_share, 0.1);
  const Profile now = at_pace(profile, pace_of({1, 1, 0.6, 0.25}));
  EXPECT_EQ(now.steps.waiting_share, 0.3);
  EXPECT_NEAR(now.pace_ratios[2], 0.6 / 0.5, near_by);  // over the ratio of its state
  EXPECT_EQ(now.pace_ratios[3], 1);
  quick.paces = {{4, pace_of({1, 1, 0.5, 0.25})}};
  EXPECT_EQ(at_pace(profile, pace_of({1, 1, 0.6, 0.25})).steps.waiting_share, 0.1) << "of other ranks";
}

TEST(AtPace, APaceOfOtherRanksIsRefused) {
  Pace other = pace_of({1});
  other.ranks = 4;
  EXPECT_THROW(at_pace(paced(), other), UnavailableError);
  EXPECT_THROW(at_pace(read_profile(test::toy_profile()), pace_of({1})), UnavailableError);
}

TEST(PaceFromJson, IsThatOfARecord) {
  const Pace pace = pace_from_json(R"({"ranks": 2, "rounds": 9, "compute_s": 2, "error": {"compute_s": 0.1}})");
  EXPECT_EQ(pace.ranks, 2);
  EXPECT_EQ(pace.times[0]->seconds, 2);
  EXPECT_EQ(pace.times[0]->error, 0.1);
  EXPECT_FALSE(pace.times[1]);
  for (const char* wrong :
       {"", "[]", "{}", R"({"ranks": 0})", R"({"ranks": 2, "compute_s": 0})", R"({"ranks": 2, "compute_s": "fast"})"})
    EXPECT_THROW(pace_from_json(wrong), UsageError) << wrong;
}

}  // namespace
}  // namespace haloscope::model
