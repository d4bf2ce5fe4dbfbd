// The checker on steps of several quantities, centrings, widths and stages: programs of every schedule pass, planted
// mistakes are found.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "stage_apps.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::StepCase;

struct Decomposition {
  Index cells;
  std::string process_grid;
  int ranks;
};

/// Odd sizes on 1 to 4 ranks.
std::vector<Decomposition> decompositions(int dims) {
  if (dims == 1) return {{{13, 1, 1}, "1", 1}, {{13, 1, 1}, "2", 2}, {{17, 1, 1}, "3", 3}, {{23, 1, 1}, "4", 4}};
  if (dims == 2)
    return {{{9, 7, 1}, "1x1", 1},  {{9, 11, 1}, "1x2", 2}, {{11, 9, 1}, "2x1", 2},
            {{17, 7, 1}, "3x1", 3}, {{7, 19, 1}, "1x3", 3}, {{11, 13, 1}, "2x2", 4}};
  return {{{5, 7, 6}, "1x1x1", 1},  {{5, 6, 9}, "1x1x2", 2}, {{9, 5, 7}, "2x1x1", 2},
          {{5, 13, 7}, "1x3x1", 3}, {{7, 9, 9}, "1x2x2", 4}, {{9, 7, 9}, "2x1x2", 4}};
}

const std::vector<const char*> ways{"ordered/p2p",
                                    "ordered:self-first/p2p",
                                    "direct/p2p",
                                    "direct:merged,fields=none/p2p",
                                    "ordered:fields=type/p2p",
                                    "ordered:fields=serial/p2p",
                                    "direct:fields=serial/p2p",
                                    "ordered:fields=pipelined/p2p",
                                    "direct:fields=pipelined/p2p"};

/// Checks the app under every schedule that can run it; each decomposition with every third way. @return the schedules
/// that could.
std::set<std::string> check_programs(const App& app, const std::vector<int>& depths = {1}) {
  std::set<std::string> done;
  for (const Schedule* schedule : schedules())
    for (std::size_t way = 0; way < ways.size(); ++way)
      for (const bool periodic : {true, false})
        for (const int depth : depths)
          for (const Substeps substeps : {Substeps::full, Substeps::shrink})
            for (std::size_t place = 0; place < decompositions(app.dims).size(); ++place) {
              if ((way + place) % 3 != 0) continue;
              const Decomposition one = decompositions(app.dims)[place];
              Choice choice = test::choice_of(app, one.cells, periodic, one.process_grid, one.ranks);
              choice.schedule = schedule->name;
              choice.strategy = ways[way];
              choice.depth = depth;
              choice.substeps = substeps;
              choice.tiles = 3;
              if (!illegal(choice).empty() || (depth == 1 && substeps != Substeps::full)) continue;
              for (int steps = 1; steps <= depth; ++steps) {
                const std::string found = StepCase(choice, steps).finding();
                EXPECT_EQ(found, "") << app.name << ", " << schedule->name << ", " << ways[way] << ", ranks "
                                     << one.process_grid << ", periodic " << periodic << ", depth " << depth << ", "
                                     << to_word(substeps) << ", steps " << steps;
                if (!found.empty()) return done;
              }
              done.insert(schedule->name);
            }
  return done;
}

const std::set<std::string> schedules_of_the_host{"bulk", "split", "divided", "interleaved", "comm-thread"};

TEST(CheckSteps, AcousticsInTwoStagesNeverReadWhatIsNotThere) {
  for (int dims : {1, 2, 3}) EXPECT_EQ(check_programs(test::acoustics(dims)), schedules_of_the_host) << dims;
}

TEST(CheckSteps, AcousticsInOneStageNeverReadWhatIsNotThere) {
  for (int dims : {1, 2, 3}) EXPECT_EQ(check_programs(test::leapfrog(dims), {1, 2, 3}), schedules_of_the_host) << dims;
}

TEST(CheckSteps, QuantitiesOfDifferentWidthsAndSlotsAreNeverReadBeforeTheyAreThere) {
  for (int dims : {1, 2, 3}) EXPECT_EQ(check_programs(test::mixture(dims)), schedules_of_the_host) << dims;
}

TEST(CheckSteps, NodesReadTheCellsThatTouchThemAtCornersToo) {
  for (int dims : {1, 2, 3}) EXPECT_EQ(check_programs(test::nodes(dims)), schedules_of_the_host) << dims;
}

TEST(CheckSteps, AStarAroundTwoCellsReachesCorners) {
  for (int dims : {1, 2, 3}) EXPECT_EQ(check_programs(test::wide_faces(dims)), schedules_of_the_host) << dims;
}

TEST(CheckSteps, WhatLaterSweepsReadIsComputedBeyondTheOwnPoints) {
  for (int dims : {1, 2})
    for (int reach : {1, 2})
      EXPECT_EQ(check_programs(test::predictor(dims, reach), {1, 2}), schedules_of_the_host) << dims;
}

TEST(CheckSteps, WhatIsSentAndOverwrittenInTheSameStageIsSentFirst) {
  for (int dims : {1, 2})
    for (int reach : {1, 2}) EXPECT_EQ(check_programs(test::wave(dims, reach), {1, 2}), schedules_of_the_host) << dims;
}

// ---- planted mistakes -----------------------------------------------------------------------------------------------

struct Planted {
  std::string schedule, strategy;
};
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.schedule << ", " << planted.strategy; }

class PlantedMistakes : public testing::TestWithParam<Planted> {
 protected:
  /// On 2 x 2 ranks, periodic: every rank has neighbours on all sides.
  static Choice choice(const App& app) {
    Choice c = test::choice_of(app, {11, 13, 1}, true, "2x2", 4);
    c.schedule = GetParam().schedule;
    c.strategy = GetParam().strategy;
    c.tiles = 3;
    return c;
  }
  static std::vector<App> all_apps() {
    return {test::acoustics(2),    test::leapfrog(2), test::mixture(2),
            test::predictor(2, 2), test::wave(2, 2),  test::nodes(2)};
  }
  /// Plants one mistake at a time into rank 0's programs: `plant` changes operation number `op` of a stage, or returns
  /// that it has no mistake to make there.
  template <class Plant>
  static void expect_all_found(const Plant& plant) {
    for (const App& app : all_apps()) {
      const Choice c = choice(app);
      int planted = 0;
      StepCase good(c);
      ASSERT_EQ(good.finding(), "") << app.name;
      for (int stage = 0; stage < static_cast<int>(good.stages.size()); ++stage)
        for (std::size_t i = 0; i < good.program(stage).ops.size(); ++i) {
          StepCase bad(c);
          if (!plant(bad.program(stage), bad.program(stage).ops[i])) continue;
          EXPECT_NE(bad.finding(), "") << app.name << ", stage " << stage << ", operation " << i << " ("
                                       << to_string(good.program(stage).ops[i].kind) << ")";
          ++planted;
        }
      EXPECT_GT(planted, 0) << app.name;
    }
  }
};

/// True if an operation on messages has none, as in a stage that exchanges nothing.
bool moves_nothing(const Program& program, const Op& op) {
  const bool of_messages = op.kind != OpKind::sweep && op.kind != OpKind::copy && op.kind != OpKind::progress;
  return of_messages && program.sets[op.target].empty();
}

TEST_P(PlantedMistakes, AMissingOperationIsFound) {
  expect_all_found([](Program& program, Op& op) {
    if (op.kind == OpKind::progress || moves_nothing(program, op)) return false;
    op.kind = OpKind::progress;  // does nothing, keeps the order
    return true;
  });
}

TEST_P(PlantedMistakes, ASweepThatWaitsForNothingIsFound) {
  expect_all_found([](Program& program, Op& op) {
    if (op.kind != OpKind::sweep || program.sweeps[op.target].part == Part::inner) return false;
    if (std::none_of(op.after.begin(), op.after.end(), [&](int before) {
          const Op& one = program.ops[before];
          return one.kind == OpKind::sweep || !moves_nothing(program, one);
        }))
      return false;
    op.after.clear();
    return true;
  });
}

TEST_P(PlantedMistakes, ASweepOfTooFewCellsIsFound) {
  expect_all_found([](Program& program, Op& op) {
    if (op.kind != OpKind::sweep) return false;
    Sweep& sweep = program.sweeps[op.target];
    --sweep.region.hi[0];
    sweep.valid = intersect(sweep.valid, sweep.region);
    return true;
  });
}

TEST_P(PlantedMistakes, ASweepBeyondTheFieldIsFound) {
  expect_all_found([](Program& program, Op& op) {
    if (op.kind != OpKind::sweep) return false;
    program.sweeps[op.target].region.hi[1] += 20;
    return true;
  });
}

TEST_P(PlantedMistakes, ASweepThatClaimsToBeRightBeyondWhatItReadsIsFound) {
  for (const App& app : {test::leapfrog(2), test::predictor(2, 1)}) {
    Choice c = choice(app);
    c.depth = 2;
    StepCase bad(c);
    ASSERT_EQ(bad.finding(), "");
    Program& program = bad.program();
    Sweep& last = program.sweeps[program.ops.back().target];
    ASSERT_EQ(program.ops.back().kind, OpKind::sweep);
    last.valid = last.region;
    EXPECT_NE(bad.finding(), "") << app.name;
  }
}

/// Two sweeps of a step change places.
TEST_P(PlantedMistakes, SweepsInTheWrongOrderAreFound) {
  for (const App& app : {test::leapfrog(2), test::predictor(2, 2), test::wave(2, 2)}) {
    StepCase bad(choice(app));
    const int last = static_cast<int>(bad.candidate.step.stages[0].sweeps.size()) - 1;
    for (Sweep& sweep : bad.program().sweeps) sweep.number = sweep.number == 0 ? last : sweep.number == last ? 0 : 1;
    EXPECT_NE(bad.finding(), "") << app.name;
  }
}

TEST_P(PlantedMistakes, ASweepOfTheWrongTimeStepIsFound) {
  for (const App& app : {test::leapfrog(2), test::predictor(2, 1)}) {
    Choice c = choice(app);
    c.depth = 2;
    StepCase bad(c);
    for (Sweep& sweep : bad.program().sweeps) sweep.step = 1 - sweep.step;
    EXPECT_NE(bad.finding(), "") << app.name;
  }
}

TEST_P(PlantedMistakes, AWrongSlotIsFound) {
  for (const int part : {0, 1}) {
    StepCase bad(choice(test::mixture(2)));
    for (Op& op : bad.program(1).ops) {
      if (op.kind != OpKind::sweep) continue;
      Sweep& sweep = bad.program(1).sweeps[op.target];
      part == 0 ? static_cast<void>(sweep.into = 0) : static_cast<void>(op.slot = 1);
    }
    EXPECT_NE(bad.finding(), "") << (part == 0 ? "written" : "read");
  }
}

TEST_P(PlantedMistakes, AnExchangeOfTheWrongSlotIsFound) {
  StepCase bad(choice(test::mixture(2)));
  for (Op& op : bad.program(1).ops)
    if (op.kind == OpKind::pack) op.slot = 1;
  EXPECT_NE(bad.finding(), "");
}

/// A part of a sweep that ignores the whole skips a plane of faces or computes one twice.
TEST_P(PlantedMistakes, APartThatMistakesItsWholeIsFound) {
  StepCase none(choice(test::acoustics(2)));
  for (Sweep& sweep : none.program().sweeps) sweep.whole = grown(sweep.whole, {1, 1, 0}, {1, 1, 0});
  EXPECT_NE(none.finding(), "");
  if (GetParam().schedule == "bulk") return;  // whose sweeps are whole
  StepCase twice(choice(test::acoustics(2)));
  for (Sweep& sweep : twice.program().sweeps) sweep.whole = sweep.region;
  EXPECT_NE(twice.finding(), "");
}

/// True if an earlier stage has filled the halo of a quantity already, and no sweep has written it since.
bool filled_before(const Candidate& candidate, int stage, int quantity) {
  const auto holds = [&](const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), quantity) != list.end();
  };
  for (int before = stage - 1; before >= 0; --before) {
    const auto& sweeps = candidate.step.stages[before].sweeps;
    if (std::any_of(sweeps.begin(), sweeps.end(), [&](const SweepSpec& s) { return holds(s.writes); })) return false;
    if (holds(exchanged(candidate, before))) return true;
  }
  return false;
}

/// Every layer of every quantity on every side is needed.
TEST_P(PlantedMistakes, ATooNarrowExchangeIsFound) {
  for (const App& app : all_apps()) {
    const Choice c = choice(app);
    int planted = 0;
    const Candidate candidate(c);
    for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage) {
      const ExchangeSpec good = exchange_spec(candidate, stage);
      for (int q = 0; q < static_cast<int>(good.quantities.size()); ++q)
        for (int d = 0; d < 2 && !filled_before(candidate, stage, exchanged(candidate, stage)[q]); ++d)
          for (const bool high : {false, true}) {
            ExchangeSpec narrow = good;
            narrow.widths.clear();
            for (int other = 0; other < static_cast<int>(good.quantities.size()); ++other)
              narrow.widths.push_back({good.low_of(other), good.high_of(other)});
            int& width = high ? narrow.widths[q].high[d] : narrow.widths[q].low[d];
            if (width == 0) continue;
            --width;
            StepCase bad(c);
            StagePrograms& changed = bad.stages[stage];
            for (int rank = 0; rank < candidate.layout.size(); ++rank) {
              changed.plans[rank] = make_plan(candidate.layout, rank, narrow);
              bad.program(stage, rank) =
                  c.schedule->make(*changed.stage, changed.plans[rank], schedule_options(candidate, stage));
            }
            EXPECT_NE(bad.finding(), "") << app.name << ", stage " << stage << ", quantity " << q << " in "
                                         << "xyz"[d] << (high ? ", high" : ", low");
            ++planted;
          }
    }
    EXPECT_GT(planted, 0) << app.name;
  }
}

TEST_P(PlantedMistakes, AStageThatExchangesTooLittleByItsOwnWishIsFound) {
  App app = test::acoustics(2);
  app.name = "acoustics-without-exchange";
  app.stages[0].exchange = std::vector<Access>{};
  EXPECT_PART(StepCase(choice(app)).finding(), "from values that are not there yet");
  app.name = "acoustics-with-exchange";
  app.stages[0].exchange = std::vector<Access>{{0, 1}};
  EXPECT_EQ(StepCase(choice(app)).finding(), "");
}

TEST_P(PlantedMistakes, MissingCornersAreFound) {
  for (const App& app : {test::nodes(2), test::predictor(2, 1)}) {
    const Choice c = choice(app);
    StepCase bad(c);
    ExchangeSpec spec = exchange_spec(bad.candidate);
    ASSERT_TRUE(spec.corners);
    spec.corners = false;
    for (int rank = 0; rank < 4; ++rank) {
      Plan& plan = bad.stages[0].plans[rank];
      plan = make_plan(bad.candidate.layout, rank, spec);
      bad.program(0, rank) = c.schedule->make(*bad.stages[0].stage, plan, schedule_options(bad.candidate));
    }
    EXPECT_NE(bad.finding(), "") << app.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, PlantedMistakes,
                         testing::Values(Planted{"bulk", "ordered/p2p"}, Planted{"bulk", "direct/p2p"},
                                         Planted{"split", "ordered/p2p"}, Planted{"split", "direct:merged/p2p"},
                                         Planted{"interleaved", "ordered:fields=none/p2p"},
                                         Planted{"comm-thread", "ordered/p2p"}, Planted{"comm-thread", "direct/p2p"}),
                         [](const auto& info) {
                           return test::test_name(info.param.schedule + "_" + info.param.strategy);
                         });

}  // namespace
}  // namespace haloscope
