// Reductions in programs: the operations that a schedule makes of each mode, their dependencies, and the checker's
// findings.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "all_programs.hpp"
#include "haloscope/core/app_json.hpp"
#include "stage_apps.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::ops_of;
using test::StepCase;

/// The app under another name, its first stage with reductions.
App reducing(App app, const std::string& name, const std::vector<Reduction>& reductions) {
  app.name = name;
  app.stages[0].reductions = reductions;
  return app;
}

/// A stencil of one double-buffered quantity and one sweep.
App smoother(const std::string& name, const std::vector<Reduction>& reductions) {
  App app = test::app_of(name, 2, {{.name = "u", .element_bytes = 0, .slots = 2}},
                         {test::stage_of("step", {test::sweep_spec("smooth", {{0, 1}}, {0})})});
  app.fused_forms = app.forms;
  return reducing(app, name, reductions);
}

Choice choice_of(const App& app, const std::string& schedule) {
  Choice c = test::choice_of(app, {11, 13, 1}, true, "2x2", 4);
  c.schedule = schedule;
  c.tiles = 3;
  return c;
}

/// Operations that run a sweep of the stage, or with -1 any, and end with the program's step `done`, or any.
std::set<int> sweeps_of(const Program& program, int number, int done = -1) {
  std::set<int> found;
  for (int i : ops_of(program, OpKind::sweep)) {
    const Sweep& sweep = program.sweeps[program.ops[i].target];
    if ((number < 0 || sweep.number == number) && (done < 0 || sweep.step + sweep.levels == done)) found.insert(i);
  }
  return found;
}

std::set<int> after(const Program& program, int op) {
  const auto& list = program.ops[op].after;
  return {list.begin(), list.end()};
}

/// The same operations, and the one after which all messages are sent, if there are any.
std::set<int> and_sent(std::set<int> ops, const Program& program) {
  const auto complete = ops_of(program, OpKind::complete);

  if (!complete.empty()) ops.insert(complete.back());
  return ops;
}

/// The one operation of its kind.
int only(const Program& program, OpKind kind) {
  const auto found = ops_of(program, kind);
  EXPECT_EQ(found.size(), 1u) << to_string(kind);
  if (found.empty()) return 0;
  const Op& op = program.ops[found[0]];
  EXPECT_EQ(op.lane, Lane::main);
  EXPECT_EQ(op.target, 0);
  return found[0];
}

class Reductions : public testing::TestWithParam<std::string> {};

TEST_P(Reductions, BlockingOnesFollowTheSweepsThatGatherTheirNumbers) {
  const App app = reducing(test::leapfrog(2), "reduces-blocking", {{.name = "energy", .numbers = 3}});
  StepCase c(choice_of(app, GetParam()));
  const Program& p = c.program();
  EXPECT_EQ(after(p, only(p, OpKind::reduce)), and_sent(sweeps_of(p, 2), p));
  EXPECT_TRUE(ops_of(p, OpKind::reduced).empty()) << "it is waited for at once";
  EXPECT_EQ(c.finding(), "");
}

TEST_P(Reductions, NonblockingOnesAreWaitedForAfterAllSweeps) {
  const App app = reducing(test::leapfrog(2), "reduces-nonblocking",
                           {{.name = "speed", .op = ReduceOp::max, .mode = ReduceMode::nonblocking, .sweep = 0}});
  StepCase c(choice_of(app, GetParam()));
  const Program& p = c.program();
  const int reduce = only(p, OpKind::reduce);
  EXPECT_EQ(after(p, reduce), sweeps_of(p, 0)) << "sweeps that gather nothing run meanwhile";
  std::set<int> all = sweeps_of(p, -1);
  all.insert(reduce);
  EXPECT_EQ(after(p, only(p, OpKind::reduced)), and_sent(all, p));
  EXPECT_EQ(c.finding(), "");
}

TEST_P(Reductions, DeferredOnesTakeThePlaceOfThoseOfTheExecutionBefore) {
  const App app = reducing(test::leapfrog(2), "reduces-deferred",
                           {{.name = "change", .op = ReduceOp::min, .mode = ReduceMode::deferred}});
  StepCase c(choice_of(app, GetParam()));
  const Program& p = c.program();
  const int reduced = only(p, OpKind::reduced);
  EXPECT_EQ(after(p, reduced), and_sent(sweeps_of(p, 2), p));
  EXPECT_EQ(after(p, only(p, OpKind::reduce)), std::set<int>{reduced});
  EXPECT_EQ(c.finding(), "");
}

/// One that reads halos, so that only its numbers depend on them.
TEST_P(Reductions, ASweepThatOnlyGathersIsProvedLikeOthers) {
  const App app =
      reducing(test::app_of("reduces-only", 2, {{.name = "u", .element_bytes = 0}, {.name = "v", .element_bytes = 0}},
                            {test::stage_of("look", {test::sweep_spec("change", {{1, 0}}, {0}),
                                                     test::sweep_spec("gather", {{1, 1}, {0, 0}}, {})})}),
               "reduces-only", {{.name = "largest", .op = ReduceOp::max}});
  StepCase c(choice_of(app, GetParam()));
  EXPECT_EQ(c.finding(), "");
  for (int i : sweeps_of(c.program(), 1)) c.program().ops[i].after.clear();
  EXPECT_NE(c.finding(), "");
}

TEST_P(Reductions, OfTheLastStepAloneAreInProgramsThatEndARunAlone) {
  const App app = smoother("reduces-last", {{.name = "sum", .last_only = true}});
  Choice choice = choice_of(app, GetParam());
  StepCase between(choice), end(choice, 0, true);
  EXPECT_TRUE(ops_of(between.program(), OpKind::reduce).empty());
  const Program& p = end.program();
  EXPECT_EQ(after(p, only(p, OpKind::reduce)), and_sent(sweeps_of(p, 0), p));
  EXPECT_EQ(end.finding(), "");
}

TEST_P(Reductions, OfDeepExchangesGatherInTheLastOfTheirStepsOverOwnCells) {
  const App app = smoother("reduces-deep", {{.name = "sum", .last_only = true}});
  for (const Substeps substeps : {Substeps::full, Substeps::shrink, Substeps::blocked})
    for (const int steps : {1, 2, 3}) {
      Choice choice = choice_of(app, GetParam());
      choice.depth = 3;
      choice.substeps = substeps;
      if (!illegal(choice).empty()) continue;
      StepCase c(choice, steps, true);
      const Program& p = c.program();
      const std::set<int> gathering = sweeps_of(p, 0, steps);
      EXPECT_EQ(after(p, only(p, OpKind::reduce)), and_sent(gathering, p)) << to_word(substeps) << ", steps " << steps;
      std::int64_t cells = 0;
      for (int op : gathering) {
        const Sweep& sweep = p.sweeps[p.ops[op].target];
        EXPECT_EQ(intersect(sweep.region, c.stages[0].plans[0].own_cells()), sweep.region);
        cells += sweep.region.volume();
      }
      EXPECT_EQ(cells, c.stages[0].plans[0].own_cells().volume()) << to_word(substeps) << ", steps " << steps;
      EXPECT_EQ(c.finding(), "") << to_word(substeps) << ", steps " << steps;
    }
}

TEST_P(Reductions, OfSeveralSweepsAndStagesAreInTheProgramsOfTheirStages) {
  App app = reducing(test::acoustics(2), "reduces-often",
                     {{.name = "vx", .sweep = 0}, {.name = "vy", .mode = ReduceMode::nonblocking, .sweep = 1}});
  app.stages[1].reductions = {{.name = "p", .op = ReduceOp::max, .mode = ReduceMode::deferred}};
  StepCase c(choice_of(app, GetParam()));
  const Program& first = c.program(0);
  const auto started = ops_of(first, OpKind::reduce);
  ASSERT_EQ(started.size(), 2u);
  for (int r : {0, 1}) {
    EXPECT_EQ(first.ops[started[r]].target, r);
    const std::set<int> gathering = sweeps_of(first, r);
    EXPECT_EQ(after(first, started[r]), r == 0 ? and_sent(gathering, first) : gathering);
  }
  ASSERT_EQ(ops_of(first, OpKind::reduced).size(), 1u);
  EXPECT_EQ(first.ops[ops_of(first, OpKind::reduced)[0]].target, 1);
  const Program& second = c.program(1);
  EXPECT_EQ(after(second, only(second, OpKind::reduced)), and_sent(sweeps_of(second, 0), second));
  EXPECT_EQ(c.finding(), "");
}

TEST_P(Reductions, ThatLastUntilALaterStageEndWithItsSweeps) {
  const Reduction sum{.name = "sum", .sweep = 0};
  const Reduction lasting{.name = "lasting", .mode = ReduceMode::nonblocking, .until = "pressure"};
  const App app = reducing(test::acoustics(2), "reduces-until", {sum, lasting});
  StepCase c(choice_of(app, GetParam()));
  EXPECT_EQ(ops_of(c.program(0), OpKind::reduce).size(), 2u);
  EXPECT_TRUE(ops_of(c.program(0), OpKind::reduced).empty()) << "its stage does not wait for it";
  Program& later = c.program(1);
  const auto ended = ops_of(later, OpKind::reduced);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(later.ops[ended[0]].target, -1) << "the last of the stage before";
  EXPECT_EQ(after(later, ended[0]), and_sent(sweeps_of(later, 0), later));
  EXPECT_EQ(c.finding(), "");
  later.ops[ended[0]].kind = OpKind::progress;
  EXPECT_PART(c.finding(), "never awaited");
}

TEST_P(Reductions, ThatDoNotWaitForTheirSweepsAreFound) {
  for (const ReduceMode mode : {ReduceMode::blocking, ReduceMode::nonblocking, ReduceMode::deferred}) {
    const App app =
        reducing(test::leapfrog(2), "reduces-too-early-" + to_word(mode), {{.name = "energy", .mode = mode}});
    const Choice choice = choice_of(app, GetParam());
    StepCase bad(choice);
    for (Op& op : bad.program().ops)
      if (op.kind == OpKind::reduce || op.kind == OpKind::reduced) op.after.clear();
    EXPECT_PART(bad.finding(), "which gathers its numbers");
  }
}

TEST_P(Reductions, ThatDoNotWaitForTheLastOfTheirSweepsAreFound) {
  const App app = smoother("reduces-parts", {{.name = "sum"}});
  StepCase bad(choice_of(app, GetParam()));
  Program& p = bad.program();
  std::erase(p.ops[only(p, OpKind::reduce)].after, *sweeps_of(p, 0).rbegin());
  EXPECT_PART(bad.finding(), "which gathers its numbers");
}

TEST_P(Reductions, ThatRanksWaitForWithMessagesUnderWayAreFound) {
  for (const ReduceMode mode : {ReduceMode::blocking, ReduceMode::nonblocking, ReduceMode::deferred}) {
    const App app = smoother("reduces-unsent-" + to_word(mode), {{.name = "sum", .mode = mode}});
    StepCase bad(choice_of(app, GetParam()));
    Program& p = bad.program();
    for (Op& op : p.ops)
      if (op.kind == OpKind::reduce || op.kind == OpKind::reduced)
        std::erase(op.after, ops_of(p, OpKind::complete).back());
    EXPECT_PART(bad.finding(), "does not wait for");
  }
}

TEST_P(Reductions, ThatNothingOrdersWithTheWaitForTheirNumbersAreFound) {
  for (const ReduceMode mode : {ReduceMode::nonblocking, ReduceMode::deferred}) {
    const App app =
        reducing(test::leapfrog(2), "reduces-unordered-" + to_word(mode), {{.name = "energy", .mode = mode}});
    StepCase bad(choice_of(app, GetParam()));
    Program& p = bad.program();
    const std::set<int> gathering = sweeps_of(p, 2);
    for (OpKind kind : {OpKind::reduce, OpKind::reduced})
      p.ops[only(p, kind)].after.assign(gathering.begin(), gathering.end());
    EXPECT_PART(bad.finding(), "nothing orders them") << to_word(mode);
  }
}

TEST_P(Reductions, ThatAreMissingAreFound) {
  for (const ReduceMode mode : {ReduceMode::blocking, ReduceMode::nonblocking, ReduceMode::deferred}) {
    const App app = reducing(test::leapfrog(2), "reduces-missing-" + to_word(mode), {{.name = "energy", .mode = mode}});
    for (OpKind kind : {OpKind::reduce, OpKind::reduced}) {
      StepCase bad(choice_of(app, GetParam()));
      if (ops_of(bad.program(), kind).empty()) continue;
      bad.program().ops[only(bad.program(), kind)].kind = OpKind::progress;
      EXPECT_PART(bad.finding(), "'energy'") << to_word(mode) << ", " << to_string(kind);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Reductions, testing::Values("bulk", "split", "interleaved", "comm-thread"),
                         [](const auto& info) { return test::test_name(info.param); });

// ---- sweeps in place ------------------------------------------------------------------------------------------------

/// Blocks of lines, one behind the other, and the pipeline's programs for them.
struct Lines {
  Layout layout;
  Step step;
  std::vector<Plan> plans{};

  Lines(int ranks, const Reduction& reduction)
      : layout(GridSpec{2, {5, 12, 1}, {}}, ProcessGrid{1, ranks, 1}), step(test::in_place_step({reduction})) {
    ExchangeSpec spec{.corners = false};
    for (int rank = 0; rank < ranks; ++rank) plans.push_back(make_plan(layout, rank, spec));
  }
  Program program(int rank, Series series, int steps, bool last) const {
    ScheduleOptions options{.steps = steps, .series = series, .last = last, .slots = 1, .flips = false};
    return find_schedule("pipeline").make(step.stages[0], plans[rank], options);
  }
  std::vector<Program> programs(int steps) const {
    std::vector<Program> all;
    for (int rank = 0; rank < layout.size(); ++rank) all.push_back(program(rank, Series::whole, steps, false));
    return all;
  }
};

/// The program of the middle one of some ranks.
Program pipeline(int ranks, Series series, int steps, bool last, const Reduction& reduction) {
  return Lines(ranks, reduction).program(ranks / 2, series, steps, last);
}

TEST(ReductionsInPlace, EachStepEndsWithItsOwn) {
  for (int ranks : {1, 3})
    for (const ReduceMode mode : {ReduceMode::blocking, ReduceMode::deferred}) {
      const Reduction residual{.name = "residual", .op = ReduceOp::max, .mode = mode};
      for (Series series : {Series::opening, Series::entry, Series::closing})
        EXPECT_TRUE(ops_of(pipeline(ranks, series, 1, false, residual), OpKind::reduce).empty());
      const Program whole = pipeline(ranks, Series::whole, 3, false, residual);
      const auto reduces = ops_of(whole, OpKind::reduce);
      ASSERT_EQ(reduces.size(), 3u);
      for (int step : {0, 1, 2}) {
        const int last_sweep = *sweeps_of(whole, 0, step + 1).rbegin();
        EXPECT_GT(reduces[step], last_sweep);
        EXPECT_TRUE(after(whole, reduces[step]).contains(last_sweep)) << "step " << step;
      }
      EXPECT_TRUE(ops_of(whole, OpKind::reduced).empty()) << "the run requests the numbers";
    }
}

TEST(ReductionsInPlace, TheCheckerTellsTheirStepsApart) {
  for (int ranks : {1, 2, 3})
    for (int steps : {1, 2, 4}) {
      const Lines lines(ranks, {.name = "residual", .op = ReduceOp::max, .mode = ReduceMode::deferred});
      EXPECT_EQ(check_programs(lines.layout, lines.step, lines.plans, lines.programs(steps)), "");
      for (int step = 0; step < steps; ++step) {
        auto bad = lines.programs(steps);
        const int reduce = ops_of(bad[0], OpKind::reduce)[step];
        bad[0].ops[reduce].after.clear();
        EXPECT_PART(check_programs(lines.layout, lines.step, lines.plans, bad), "which gathers its numbers")
            << "step " << step << " of " << steps << ", ranks " << ranks;
      }
    }
}

TEST(ReductionsInPlace, OfTheLastStepAloneAreInItsBodyAlone) {
  const Reduction residual{.name = "residual", .last_only = true};
  EXPECT_TRUE(ops_of(pipeline(3, Series::body, 1, false, residual), OpKind::reduce).empty());
  const Program last = pipeline(3, Series::body, 1, true, residual);
  EXPECT_EQ(only(last, OpKind::reduce), static_cast<int>(last.ops.size()) - 1) << "no line is in flight any more";
}

TEST(ReductionsInPlace, AnExchangeAloneHasNone) {
  const Layout layout(GridSpec{2, {8, 8, 1}, {}}, ProcessGrid{2, 1, 1});
  const Program program = exchange_program(make_plan(layout, 0, ExchangeSpec{.high = {1, 1, 0}}));
  EXPECT_TRUE(ops_of(program, OpKind::reduce).empty());
  EXPECT_FALSE(ops_of(program, OpKind::send).empty());
}

// ---- as JSON --------------------------------------------------------------------------------------------------------

TEST(ReductionJson, HasTheWayAndTheTypeBothWays) {
  App app = test::acoustics(2);
  app.stages[0].reductions = {{.name = "counts",
                               .numbers = 6,
                               .sweep = 0,
                               .collectives = 3,
                               .by = ReduceBy::gather,
                               .type = NumberType::integer},
                              {.name = "lists", .op = ReduceOp::max, .sweep = 0, .by = ReduceBy::lists},
                              {.name = "plain", .op = ReduceOp::min}};
  const Step step = resolved({app.quantities, app.stages}, 2, "sent");
  const auto again = described_step(to_json(step)).stages[0].reductions;
  ASSERT_EQ(again.size(), 3u);
  for (std::size_t r = 0; r < again.size(); ++r) {
    const Reduction& original = step.stages[0].reductions[r];
    EXPECT_EQ(
        std::tuple(again[r].by, again[r].type, again[r].op, again[r].collectives, again[r].sweep, again[r].calls()),
        std::tuple(original.by, original.type, original.op, original.collectives, original.sweep, original.calls()));
  }
  EXPECT_EQ(again[0].calls(), 3);
  EXPECT_EQ(again[1].calls(), 2) << "the length first";
}

// ---- legality -------------------------------------------------------------------------------------------------------

TEST(ReductionLegality, NumbersOfEachStepForbidDeepExchanges) {
  Choice choice = choice_of(smoother("reduces-each", {{.name = "sum"}}), "bulk");
  EXPECT_EQ(illegal(choice), "");
  choice.depth = 2;
  EXPECT_PART(illegal(choice), "reads 'sum' in each; use --depth 1");
  choice.app = test::known(smoother("reduces-at-last", {{.name = "sum", .last_only = true}})).name;
  EXPECT_EQ(illegal(choice), "");
}

TEST(ReductionLegality, OneThatLastsUntilALaterStageIsNonblockingAndNamesOneThatFollows) {
  const auto fault = [](const Reduction& reduction, int loop = 0) {
    App app = test::acoustics(2);
    app.stages[0].reductions = {reduction};
    app.stages[1].repeats = loop;
    return test::error_of([&] {
      const Step step = resolved({app.quantities, app.stages}, 2, "lasting");
      EXPECT_EQ(step.stages[1].awaited, std::vector<int>{-1});
    });
  };
  Reduction good{.name = "sum", .mode = ReduceMode::nonblocking, .until = "pressure"};
  EXPECT_EQ(fault(good), "no error");
  const std::string remedy = "name a later stage";
  EXPECT_PART(fault(good, 1), remedy) << "it is in a loop";
  for (const char* until : {"velocities", "density"}) {
    Reduction bad = good;
    bad.until = until;
    EXPECT_PART(fault(bad), remedy) << until;
  }
  Reduction blocking = good, last = good;
  blocking.mode = ReduceMode::blocking;
  last.last_only = true;
  EXPECT_PART(fault(blocking), remedy);
  EXPECT_PART(fault(last), remedy);
}

TEST(ReductionLegality, ADeferredOneThatEndsTheRunNeedsTheFieldsOfTheStepBefore) {
  const auto ending = [](App app) {
    app.finished = [](const Problem&, int, std::span<const double>, std::span<const double>) { return false; };
    app.ends_early = [](const Problem&) { return true; };
    return choice_of(app, "bulk");
  };
  const Reduction deferred{.name = "change", .mode = ReduceMode::deferred}, blocking{.name = "change"};
  const App one_slot = test::leapfrog(2);
  EXPECT_PART(illegal(ending(reducing(one_slot, "ends-deferred", {deferred}))), "overwrites them; use another mode");
  EXPECT_EQ(illegal(ending(reducing(one_slot, "ends-blocking", {blocking}))), "");
  EXPECT_EQ(illegal(ending(smoother("ends-with-two-slots", {deferred}))), "");
  App staged = smoother("ends-after-two-stages", {deferred});
  staged.quantities.push_back({.name = "v", .element_bytes = 0});
  staged.stages.push_back(test::stage_of("again", {test::sweep_spec("follow", {{0, 1}}, {1})}));
  EXPECT_PART(illegal(ending(staged)), "has several stages in a step; use another mode");
}

}  // namespace
}  // namespace haloscope
