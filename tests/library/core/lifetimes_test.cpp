// Quantities that live within a step, and the stages between which they live.
#include <gtest/gtest.h>

#include "haloscope/extend/candidate.hpp"
#include "haloscope/stage.hpp"
#include "stage_apps.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::stage_of;
using test::sweep_spec;

constexpr std::array<bool, 3> wraps{true, true, true}, walls{false, false, false};

/// "first-end" by quantity, "" for quantities that outlive a step.
std::vector<std::string> lives_in(const Step& step, const std::array<bool, 3>& periodic = wraps) {
  std::vector<std::string> found;
  for (const auto& life : lifetimes_of(step, periodic))
    found.push_back(life ? std::to_string(life->first) + "-" + std::to_string(life->end) : "");
  return found;
}

/// State 0; 1 is made of it in the first stage and used in the second, 2 in the third alone.
Step three_stages() {
  Step step;
  step.quantities = {{.name = "state"}, {.name = "flux"}, {.name = "change"}};
  step.stages = {stage_of("one", {sweep_spec("make", {{0, 1}}, {1})}),
                 stage_of("two", {sweep_spec("use", {{1, 1}}, {0})}),
                 stage_of("three", {sweep_spec("change", {{0, 0}}, {2}), sweep_spec("add", {{0, 0}, {2, 0}}, {0})})};
  return resolved(step, 3, "three");
}

TEST(Lifetimes, ReachFromTheFirstUseToTheLast) {
  EXPECT_EQ(lives_in(three_stages()), (std::vector<std::string>{"", "0-2", "2-3"}));
}

TEST(Lifetimes, OfWhatIsReadOrExchangedFirstOutliveTheStep) {
  Step step = three_stages();
  step.stages[0].exchange = {{2, 1}};
  EXPECT_EQ(lives_in(step)[2], "");
  step = three_stages();
  step.stages[0].sweeps[0].reads.push_back({1, 0});
  EXPECT_EQ(lives_in(step)[1], "");
}

TEST(Lifetimes, OfDoubleBufferedQuantitiesOutliveTheStep) {
  Step step = three_stages();
  step.quantities[1].slots = 2;
  EXPECT_EQ(lives_in(step)[1], "");
}

TEST(Lifetimes, TakeLoopsAsAWhole) {
  Step step = three_stages();
  step.stages[1].repeats = 2;
  EXPECT_EQ(lives_in(step), (std::vector<std::string>{"", "0-3", "1-3"}));
  step.stages[1].least = 0;  // a quantity that only a loop writes is old without it, and the loop may be skipped
  EXPECT_EQ(lives_in(step), (std::vector<std::string>{"", "0-3", ""}));
}

TEST(Lifetimes, OutliveTheStepWhereSweepsReadFixedValuesBeyondAnEdge) {
  Step step = three_stages();
  EXPECT_EQ(lives_in(step, walls)[1], "");
  EXPECT_EQ(lives_in(step, walls)[2], "2-3");  // read only at the points themselves
  step.quantities[1].edges = {Edge::even, Edge::odd, Edge::even};
  EXPECT_EQ(lives_in(step, walls)[1], "0-2");
}

TEST(Lifetimes, FreedTemporariesAreRefusedWhereThereAreNoneOrOthersReachThem) {
  Choice c = test::choice_of(test::predictor(3, 1), {12, 12, 12}, true, "", 1);
  c.temporaries = Temporaries::freed;
  EXPECT_EQ(illegal(c), "");
  c.memory = MemoryKind::shared;
  EXPECT_PART(illegal(c), "are shared");
  c.memory = MemoryKind::own;
  c.app = "laplace3d";
  EXPECT_PART(illegal(c), "has none");
}

TEST(Lifetimes, ReductionsInSeveralCollectivesMustDivideEvenlyAndBlock) {
  Step step = three_stages();
  step.stages[2].reductions = {{.name = "r", .numbers = 6, .collectives = 3}};
  EXPECT_NO_THROW(resolved(step, 3, "three"));
  step.stages[2].reductions[0].collectives = 4;
  EXPECT_THROW(resolved(step, 3, "three"), UsageError);
  step.stages[2].reductions[0].collectives = 3;
  step.stages[2].reductions[0].mode = ReduceMode::nonblocking;
  EXPECT_THROW(resolved(step, 3, "three"), UsageError);
}

}  // namespace
}  // namespace haloscope
