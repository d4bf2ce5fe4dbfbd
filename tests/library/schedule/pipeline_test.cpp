// The pipeline's programs pass the checker on every decomposition into lines; broken ones and illegal choices do not.
#include <gtest/gtest.h>

#include <algorithm>

#include "all_programs.hpp"
#include "haloscope/extend/transport_traits.hpp"
#include "stage_apps.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::AllPrograms;
using test::in_place_step;

ScheduleOptions in_place_options(int steps) {
  ScheduleOptions options{.steps = steps, .slots = 1, .flips = false};
  return options;
}

AllPrograms make_case(int ranks, std::int64_t lines, int steps, Pattern pattern = Pattern::ordered) {
  ScheduleOptions options = in_place_options(steps);
  options.tiles = 3;
  const Layout layout(GridSpec{2, {3, lines, 1}, {false, false, false}}, ProcessGrid{1, ranks, 1});
  return {layout, in_place_step(), {.pattern = pattern, .corners = false}, "pipeline", options};
}

TEST(Pipeline, SB2_KeepsTheSequentialOrderOnAnyNumberOfLinesAndRanks) {
  for (Pattern pattern : {Pattern::ordered, Pattern::direct})
    for (int ranks : {1, 2, 3, 4, 7})
      for (std::int64_t lines : {ranks, ranks + 1, 2 * ranks + 1, 3 * ranks, 3 * ranks + 2})
        for (int steps : {1, 2, 5})
          EXPECT_EQ(make_case(ranks, lines, steps, pattern).finding(), "")
              << ranks << " ranks, " << lines << " lines, " << steps << " steps";
}

TEST(Pipeline, SB2_HoldsWithTilesOfLongBlocks) { EXPECT_EQ(make_case(2, 400, 2).finding(), ""); }

TEST(Pipeline, ALineThatIsSentTooEarlyIsFound) {
  AllPrograms c = make_case(3, 9, 3);
  Program& program = c.programs[1];  // the last own line leaves before it is swept
  const auto sweeps = [](const Op& op) { return op.kind == OpKind::sweep; };
  const auto last = std::find_if(program.ops.rbegin(), program.ops.rend(), sweeps);
  for (Op& op : program.ops)
    if (op.lane == Lane::comm) std::erase(op.after, static_cast<int>(program.ops.rend() - last) - 1);
  EXPECT_NE(c.finding(), "");
}

TEST(Pipeline, AReceiveThatMayOverwriteALineStillNeededIsFound) {
  AllPrograms c = make_case(2, 6, 2);
  for (Op& op : c.programs[1].ops)
    if (op.kind == OpKind::post) op.after.clear();
  EXPECT_PART(c.finding(), "nothing orders them");
}

TEST(Pipeline, ASweepOutOfOrderIsFound) {
  AllPrograms c = make_case(1, 6, 2);
  Program& program = c.programs[0];
  std::swap(program.sweeps[0].step, program.sweeps[1].step);
  EXPECT_PART(c.finding(), "out of the sequential order");
}

TEST(Pipeline, ItsPartsAreTheWholeProgramCutUp) {
  ExchangeSpec spec{.corners = false};
  const Layout layout(GridSpec{2, {5, 12, 1}, {false, false, false}}, ProcessGrid{1, 3, 1});
  const Step step = in_place_step();
  for (int r = 0; r < 3; ++r) {
    const Plan plan = make_plan(layout, r, spec);
    int joined_steps = 0;
    const auto kinds = [&](Series series, int steps) {
      ScheduleOptions options = in_place_options(steps);
      options.series = series;
      const Program program = find_schedule("pipeline").make(step.stages[0], plan, options);
      EXPECT_EQ(program.final_slot, 0) << "in place";
      joined_steps += series == Series::whole ? -program.steps : program.steps;
      std::vector<OpKind> list;
      for (const Op& op : program.ops) list.push_back(op.kind);
      return list;
    };
    std::vector<OpKind> joined = kinds(Series::opening, 1);
    for (Series part : {Series::entry, Series::body, Series::entry, Series::body, Series::closing})
      for (OpKind kind : kinds(part, 1)) joined.push_back(kind);
    EXPECT_EQ(joined, kinds(Series::whole, 2)) << "rank " << r;
    EXPECT_EQ(joined_steps, 0);
  }
}

Choice in_place_choice(int ranks = 3) {
  Step step = in_place_step();
  step.stages[0].sweeps[0].run = test::compute_nothing;
  App app = test::app_of("in-place", 2, step.quantities, step.stages);
  app.plain = test::compute_nothing;
  Choice c = test::choice_of(app, {23, 23, 1}, false, "slabs", ranks);
  c.threads = 1;
  c.schedule = "pipeline";
  return c;
}

TEST(Pipeline, AReductionIsMadeOnceAStepOrInTheLastStepOnly) {
  for (bool last_only : {false, true})
    for (int ranks : {1, 3})
      for (bool last : {false, true}) {
        const Step step = in_place_step({{.name = "norm", .last_only = last_only}});
        ScheduleOptions options = in_place_options(4);
        options.last = last;
        const Layout layout(GridSpec{2, {3, 4 * ranks, 1}, {}}, ProcessGrid{1, ranks, 1});
        for (int rank = 0; rank < ranks; ++rank) {
          const Plan plan = make_plan(layout, rank, {.corners = false});
          const Program program = find_schedule("pipeline").make(step.stages[0], plan, options);
          EXPECT_EQ(test::ops_of(program, OpKind::reduce).size(), last_only ? last : 4u) << rank << " of " << ranks;
        }
      }
}

TEST(PipelineLegality, SweepsInPlaceNeedThePipelineAndThePipelineSweepsInPlace) {
  EXPECT_EQ(illegal(in_place_choice()), "");
  Choice c = in_place_choice();
  c.schedule = "bulk";
  EXPECT_PART(illegal(c), "--schedule pipeline");
  c = in_place_choice();
  c.app = "laplace2d";
  EXPECT_PART(illegal(c), "in place");
}

TEST(PipelineLegality, ThePipelineHasOneLinePerMessageAndStep) {
  Choice c = in_place_choice(4);
  c.process_grid = "2x2";
  EXPECT_PART(illegal(c), "--process-grid slabs");
  c = in_place_choice();
  c.depth = 2;
  EXPECT_PART(illegal(c), "--depth 1");
}

TEST(PipelineLegality, CollectiveTransportsAreRefusedForThePipeline) {
  Choice c = in_place_choice();
  c.strategy = "reference";
  EXPECT_NE(illegal(c), "");
  for (const TransportTraits* transport : transport_traits()) {
    if (!transport->collective_rounds || transport->name == "reference") continue;
    c.strategy = "ordered/" + transport->name;
    EXPECT_PART(illegal(c), "serialise the pipeline");
  }
}

TEST(PipelineLegality, MoreRanksThanLinesAreRefused) {
  EXPECT_EQ(illegal(in_place_choice(23)), "");
  EXPECT_PART(illegal(in_place_choice(24)), "puts 24 ranks on 23 cells in y; use fewer ranks");
}

}  // namespace
}  // namespace haloscope
