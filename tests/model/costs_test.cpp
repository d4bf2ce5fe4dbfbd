// Costs of a profile as the model reads them; whole predictions are tested from Python, test_predict.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "haloscope/error.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/model/best.hpp"
#include "haloscope/model/network.hpp"
#include "haloscope/model/ranks.hpp"
#include "haloscope/model/sampling.hpp"
#include "haloscope/model/traffic.hpp"
#include "texts.hpp"

namespace haloscope::model {
namespace {

/// A machine of nodes with 12 cores whose messages cost a latency and a time per byte everywhere.
std::string machine(const std::string& more = "", double latency = 1, double per_byte = 0) {
  return R"({"schema": "haloscope-profile", "schema_version": 1, "name": "hand", "origin": "published", "source": "",
    "machine": {"host": "", "cpu": "c", "nodes": 8, "sockets_per_node": 2, "cores_per_socket": 6},
    "network": {"classes": {"node": {"segments": [{"from_bytes": 0, "to_bytes": null, "latency_s": )" +
         std::to_string(latency) + R"(, "per_byte_s": )" + std::to_string(per_byte) + "}]}}}" + more + "}";
}

Reduction gathered(int numbers, int collectives, ReduceBy by, NumberType type) {
  Reduction reduction;
  reduction.name = "sum";
  reduction.numbers = numbers;
  reduction.collectives = collectives;
  reduction.by = by;
  reduction.type = type;
  return reduction;
}

std::string fault(const std::string& json) {
  return test::error_of([&] { profile_from_json(json, "it"); });
}

TEST(PlanClasses, RanksBesideAHoleDifferFromThoseWithAllNeighbours) {
  std::vector<Box> owned;
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x)
      if (x + y > 0) owned.push_back({{2 * x, 2 * y, 0}, {2 * x + 2, 2 * y + 2, 1}});  // none at the corner
  const Layout layout({2, {8, 8, 1}}, owned, true);
  ExchangeSpec spec{.pattern = Pattern::direct};
  const std::vector<int> classes = plan_classes(layout);
  std::map<int, std::size_t> messages;
  for (int rank = 0; rank < layout.size(); ++rank) {
    const std::size_t own = make_plan(layout, rank, spec).messages.size();
    EXPECT_EQ(messages.try_emplace(classes[rank], own).first->second, own) << "rank " << rank;
  }
}

TEST(PlanClasses, InnerRanksOfALargeGridAreOneClass) {
  const auto count = [](const std::vector<int>& classes) {
    return *std::max_element(classes.begin(), classes.end()) + 1;
  };
  EXPECT_EQ(count(plan_classes(Layout({3, {60, 60, 60}}, {6, 6, 6}))), 27);
  EXPECT_EQ(count(plan_classes(Layout({2, {60, 60, 1}, {true, true, false}}, {6, 6, 1}))), 1);
}

TEST(PlanClasses, RanksOfOneClassHaveEqualPlansButForRankNumbers) {
  const Layout layout({3, {11, 9, 13}, {true, false, true}}, {3, 2, 3});
  const std::vector<int> classes = plan_classes(layout);
  std::map<int, Plan> firsts;
  for (int rank = 0; rank < layout.size(); ++rank) {
    Plan plan = make_plan(layout, rank, {});
    for (Message& message : plan.messages) message.peer = -1;
    const Plan& first = firsts.try_emplace(classes[rank], plan).first->second;
    ASSERT_EQ(plan.messages.size(), first.messages.size());
    for (std::size_t m = 0; m < plan.messages.size(); ++m) {
      EXPECT_EQ(plan.messages[m].regions, first.messages[m].regions);
      EXPECT_EQ(plan.messages[m].tag, first.messages[m].tag);
    }
    EXPECT_EQ(plan.copies, first.copies);
    EXPECT_EQ(plan.cells, first.cells);
  }
}

TEST(Profile, FaultsAreNamedWithTheirPlace) {
  EXPECT_PART(fault("{"), "it is not JSON");
  EXPECT_PART(fault("[]"), "not a machine profile");
  const std::string gap = R"(, "kernels": {"a/b/f64": {"1": [
    {"from_cells": 0, "to_cells": 5, "fixed_s": 0, "per_cell_s": 1},
    {"from_cells": 6, "to_cells": null, "fixed_s": 0, "per_cell_s": 1}]}})";
  EXPECT_PART(fault(machine(gap)),
              "kernels/a/b/f64/1: segments must follow one another: one ends at 5 cells, the next "
              "starts at 6");
  EXPECT_PART(fault(machine(R"(, "pack": {"lines": {"one": []}})")), "'one' is not a number");
  EXPECT_EQ(fault(machine()), "no error");
}

TEST(Profile, AClassThatIsAbsentCostsWhatTheNearestDoes) {
  const Profile p = profile_from_json(machine());
  EXPECT_EQ(message_time(p, Locality::network, 8), 1);
  EXPECT_EQ(contention(p, Locality::network).duplex, 1);
  EXPECT_EQ(contention(p, Locality::socket).duplex, 2);
  EXPECT_FALSE(p.has_messages(Locality::socket));
}

TEST(Network, AMessageOccupiesWhatItSharesForItsGapAndItsBytes) {
  const auto law = [](const std::string& values) {
    std::string json = machine("", 1, 0.5);
    const std::string at = R"("segments")";
    return contention(profile_from_json(json.replace(json.find(at), 0, R"("contention": )" + values + ", ")),
                      Locality::network);
  };
  const double alone = 1 + 0.5 * 8;
  EXPECT_EQ(law("{}").occupied(alone), alone) << "its whole latency, unless the profile has another";
  EXPECT_DOUBLE_EQ(law(R"({"gap_s": 0})").occupied(alone), 4);
  EXPECT_DOUBLE_EQ(law(R"({"gap_s": 0.25})").occupied(alone), 4.25);
  EXPECT_DOUBLE_EQ(law(R"({"gap_s": 3})").occupied(alone), 7) << "a gap may be longer than the latency";
  EXPECT_EQ(law(R"({"gap_s": 0})").occupied(0.5), 0) << "a flight that a transport has shortened";
}

TEST(Network, ReductionsAreReadBetweenMeasuredRankCounts) {
  const Profile p = profile_from_json(
      machine(R"(, "reductions": {"allreduce": [{"ranks": 16, "time_s": 3e-6}, {"ranks": 4, "time_s": 1e-6}]})"));
  EXPECT_DOUBLE_EQ(allreduce_time(p, 8), 2e-6);
  EXPECT_DOUBLE_EQ(allreduce_time(p, 2), 1e-6);
  EXPECT_DOUBLE_EQ(allreduce_time(p, 1024), 3e-6);
  EXPECT_EQ(allreduce_time(p, 1), 0);
  EXPECT_THROW(allreduce_time(profile_from_json(machine()), 8), UnavailableError);
  EXPECT_DOUBLE_EQ(reduction_time(p, gathered(6, 3, ReduceBy::reduce, NumberType::real), 16), 9e-6);
}

TEST(Network, AGatherIsATreeOfStepsAndListsHaveTheirLengthsGatheredBefore) {
  const Profile p = profile_from_json(machine());  // each step takes a second
  EXPECT_EQ(reduction_time(p, gathered(6, 3, ReduceBy::gather, NumberType::integer), 8), 3 * 3);
  EXPECT_EQ(reduction_time(p, gathered(6, 2, ReduceBy::lists, NumberType::real), 3), 4 * 2);
  EXPECT_EQ(reduction_time(p, gathered(6, 2, ReduceBy::lists, NumberType::real), 1), 0);
}

TEST(Network, AGatherCostsWhatOneOfANumberDoesAndItsFurtherBytes) {
  const std::string measured =
      R"(, "reductions": {"allgather": [{"ranks": 2, "time_s": 7}, {"ranks": 8, "time_s": 9}]})";
  const Profile p = profile_from_json(machine(measured, 1, 0.125));
  const auto time = [&](NumberType type, int numbers, int ranks) {
    return reduction_time(p, gathered(numbers, 1, ReduceBy::gather, type), ranks);
  };
  EXPECT_EQ(time(NumberType::character, 1, 4), 8);
  EXPECT_EQ(time(NumberType::real, 1, 4), 8);
  EXPECT_EQ(time(NumberType::real, 2, 4), 8 + 3);
  EXPECT_EQ(time(NumberType::real, 1, 64), 9);
}

TEST(Steps, MoreNeighboursWaitLongerForTheSlowest) {
  StepCost steps;
  steps.waiting_share.value = 0.02;
  EXPECT_EQ(steps.waiting(0, 0, 1), 0);
  EXPECT_NEAR(steps.waiting(1, 0, 1), 0.02, 1e-12);
  double before = 0;
  for (const int neighbours : {1, 2, 6, 26}) {
    EXPECT_GT(steps.waiting(neighbours, 0, 1), before);
    before = steps.waiting(neighbours, 0, 1);
  }
  EXPECT_LT(before, 5 * 0.02);
}

TEST(Steps, RanksWaitAShareOfShortSweepsAndTheRootOfLongOnes) {
  StepCost steps;
  steps.far_waiting_share.value = 0.1;
  EXPECT_EQ(steps.waiting(1, 1, 4), 2 * steps.waiting(1, 1, 2)) << "without a limit, unless the profile has one";
  steps.waiting_span_s.value = 1e-3;
  EXPECT_NEAR(steps.waiting(1, 1, 1e-6), 0.1 * 1e-6, 1e-9);
  EXPECT_NEAR(steps.waiting(1, 1, 4) / steps.waiting(1, 1, 1), 2, 1e-3);
  EXPECT_EQ(steps.waiting(1, 0, 4), 0);
}

TEST(Steps, BlocksBetweenTheLimitsOfTheCacheHaveAShareOfTheirOwn) {
  StepCost steps;
  steps.waiting_share.value = 0.02;
  steps.far_waiting_share.value = 0.1;
  steps.between_waiting_share.value = 0.3;
  EXPECT_NEAR(steps.waiting(1, 0, 1), 0.02, 1e-12);
  EXPECT_NEAR(steps.waiting(1, 0.5, 1), 0.06 + 0.3, 1e-12);
  EXPECT_NEAR(steps.waiting(1, 1, 1), 0.1, 1e-12);
}

TEST(Profile, StatesHaveCostsOfTheirOwnOnTheSameMachine) {
  const Profile p = profile_from_json(machine(R"(, "steps": {"waiting_share": 0.1}, "states": [
    {"steps": {"waiting_share": 0.2}, "pace": {"2": {"bandwidth_s": 1e-5}}}])"),
                                      "it");
  ASSERT_EQ(p.states.size(), 1u);
  EXPECT_EQ(p.steps.waiting_share, 0.1);
  EXPECT_EQ(p.states[0].steps.waiting_share, 0.2);
  EXPECT_EQ(p.states[0].cores_per_socket, 6);
  EXPECT_EQ(p.states[0].paces.at(2).ranks, 2);
  EXPECT_FALSE(p.states[0].network) << "nothing is taken over that it does not say";
  EXPECT_PART(fault(machine(R"(, "states": {})")), "states: this must be a list");
}

TEST(Segments, BytesInRowsCostATimePerRow) {
  const Segments law{{0, 100, {1, 0}, {2, 0}, {10, 0}}, {100, infinity, {}, {3, 0}, {}}};
  EXPECT_EQ(evaluate(law, 4), 1 + 2 * 4);
  EXPECT_EQ(evaluate(law, 4, 3), 1 + 2 * 4 + 10 * 3);
  EXPECT_EQ(evaluate(law, 100, 3), 300);
  EXPECT_EQ(evaluate_at({{1, law}, {3, {{0, infinity, {}, {}, {2, 0}}}}}, 2, 4, 3), (39 + 6) / 2.0);
}

TEST(Traffic, CopiesOfUnlikeStretchesAreNotOneMean) {
  const Layout layout({3, {40, 40, 40}, {true, true, true}}, {1, 1, 2});
  ExchangeSpec spec{.quantities = {Quantity{"u", 8}}};
  spec.low = spec.high = {4, 4, 4};
  const Plan plan = make_plan(layout, 0, spec);
  const Program program = find_schedule("bulk").make(stencil_step(3, 4, true).stages.front(), plan, ScheduleOptions{});
  const auto found = traffic_of_copies(program, plan);
  ASSERT_EQ(found.size(), program.copy_sets.size());
  bool both = false;
  for (std::size_t set = 0; set < found.size(); ++set) {
    std::int64_t bytes = 0;
    for (const Copy& copy : program.copy_sets[set]) bytes += 8 * copy.to.volume();
    EXPECT_EQ(together(found[set]).bytes, bytes);
    for (const Traffic& part : found[set]) EXPECT_TRUE(part.run_bytes == 4 * 8 || part.run_bytes >= 40 * 8);
    both = both || found[set].size() > 1;
  }
  EXPECT_TRUE(both) << "columns and rows are in one set";
}

TEST(Traffic, TellsHowFarApartStretchesBegin) {
  EXPECT_EQ(stride_class(8, 4095), Stride::strided);
  EXPECT_EQ(stride_class(8, 4096), Stride::scattered);
  EXPECT_EQ(stride_class(64, 4096), Stride::lines);
  EXPECT_EQ(stride_class(4096, 8192), Stride::contiguous);
}

TEST(Sampling, DrawsHaveTheWidthOfTheIntervalAndRepeatThemselves) {
  const Profile p =
      profile_from_json(machine(R"(, "steps": {"per_program_s": 10, "interval": {"per_program_s": [8.04, 11.96]}})"));
  ParameterSamples draws(p, 2000);
  std::vector<double> first, again;
  draws.each([&](const Profile& drawn) { first.push_back(drawn.steps.per_program_s); });
  draws.each([&](const Profile& drawn) { again.push_back(drawn.steps.per_program_s); });
  const auto [low, high] = spread_of(first, 10);
  EXPECT_NEAR(low, 1 - 0.1 * tail_deviations(), 0.01);
  EXPECT_NEAR(high, 1 + 0.1 * tail_deviations(), 0.01);
  EXPECT_NEAR(tail_deviations(), 1.6448536269514722, 1e-12);
  EXPECT_EQ(first, again);
  EXPECT_FALSE(ParameterSamples(profile_from_json(machine()), 10).any());
}

}  // namespace
}  // namespace haloscope::model
