// Consequences of the stages of a step: reaches of sweeps, widths of halos, and refusals.
#include <gtest/gtest.h>

#include "haloscope/error.hpp"
#include "haloscope/stage.hpp"
#include "haloscope/sweep.hpp"
#include "stage_apps.hpp"
#include "texts.hpp"

namespace haloscope {
namespace {

using test::stage_of;
using test::sweep_spec;

constexpr Centring centrings[] = {Centring::cell, Centring::node, Centring::face_x, Centring::face_y, Centring::face_z};

/// One stage of one sweep, which reads one quantity and writes another.
Step reading(Centring read, Centring written, int layers, int dims) {
  Step step;
  step.quantities = {{.name = "read", .centring = read}, {.name = "written", .centring = written}};
  step.stages = {stage_of("step", {sweep_spec("sweep", {{0, layers}}, {1})})};
  return resolved(step, dims, "reading");
}

Widths reach_of(Centring read, Centring written, int layers, int dims) {
  return reading(read, written, layers, dims).stages[0].sweeps[0].reads[0].reach;
}

TEST(Reach, OfTheSameCentringIsTheNumberOfLayers) {
  for (Centring centring : centrings)
    for (int layers : {0, 1, 3}) {
      EXPECT_EQ(reach_of(centring, centring, layers, 3), (Widths{layers, layers, layers})) << to_word(centring);
      EXPECT_EQ(reach_of(centring, centring, layers, 2), (Widths{layers, layers, 0})) << to_word(centring);
    }
}

TEST(Reach, OfFacesFromCellsIsACellMoreAcrossThem) {
  EXPECT_EQ(reach_of(Centring::cell, Centring::face_x, 0, 3), (Widths{1, 0, 0}));
  EXPECT_EQ(reach_of(Centring::cell, Centring::face_y, 0, 3), (Widths{0, 1, 0}));
  EXPECT_EQ(reach_of(Centring::cell, Centring::face_z, 2, 3), (Widths{2, 2, 3}));
  EXPECT_EQ(reach_of(Centring::cell, Centring::node, 0, 3), (Widths{1, 1, 1}));
  EXPECT_EQ(reach_of(Centring::face_x, Centring::node, 0, 3), (Widths{0, 1, 1}));
  EXPECT_EQ(reach_of(Centring::face_x, Centring::face_y, 1, 3), (Widths{1, 2, 1}));
}

TEST(Reach, OfCellsFromTheirFacesIsNoneSinceBothRanksHoldTheSharedPlane) {
  for (Centring face : test::face_centring) EXPECT_EQ(reach_of(face, Centring::cell, 0, 3), (Widths{0, 0, 0}));
  EXPECT_EQ(reach_of(Centring::node, Centring::cell, 0, 3), (Widths{0, 0, 0}));
  EXPECT_EQ(reach_of(Centring::node, Centring::face_x, 0, 3), (Widths{0, 0, 0}));
  EXPECT_EQ(reach_of(Centring::face_x, Centring::cell, 1, 3), (Widths{1, 1, 1}));
}

TEST(Reach, OfASweepThatWritesSeveralQuantitiesServesAllOfThem) {
  Step step;
  step.quantities = {{.name = "p"}, {.name = "vx", .centring = Centring::face_x}, {.name = "q"}};
  step.stages = {stage_of("step", {sweep_spec("sweep", {{0, 1}}, {1, 2})})};
  EXPECT_EQ(resolved(step, 2, "several").stages[0].sweeps[0].reads[0].reach, (Widths{2, 1, 0}));
}

// ---- points of a box of cells ---------------------------------------------------------------------------------------

TEST(PointsOf, CellsAreTheBox) {
  const Box box{{1, 2, 0}, {5, 6, 3}};
  EXPECT_EQ(points_of(box, box, Centring::cell, 3), box);
}

TEST(PointsOf, TheUpperEndOfTheWholeHasOnePlaneMoreWhereItIsStaggered) {
  const Box box{{1, 2, 0}, {5, 6, 3}};
  EXPECT_EQ(points_of(box, box, Centring::node, 3), (Box{{1, 2, 0}, {6, 7, 4}}));
  EXPECT_EQ(points_of(box, box, Centring::face_x, 3), (Box{{1, 2, 0}, {6, 6, 3}}));
  EXPECT_EQ(points_of(box, box, Centring::face_z, 3), (Box{{1, 2, 0}, {5, 6, 4}}));
  EXPECT_EQ(points_of(box, box, Centring::face_z, 2), box) << "dimensions that the grid lacks have no planes";
  EXPECT_EQ(points_of(box, box, Centring::node, 1), (Box{{1, 2, 0}, {6, 6, 3}}));
}

TEST(PointsOf, APointThatTwoPartsShareBelongsToTheHigherOne) {
  const Box whole{{0, 0, 0}, {6, 4, 1}}, low{{0, 0, 0}, {3, 4, 1}}, high{{3, 0, 0}, {6, 4, 1}};
  EXPECT_EQ(points_of(low, whole, Centring::face_x, 2), low);
  EXPECT_EQ(points_of(high, whole, Centring::face_x, 2), (Box{{3, 0, 0}, {7, 4, 1}}));
  EXPECT_EQ(points_of(low, whole, Centring::face_y, 2), (Box{{0, 0, 0}, {3, 5, 1}}));
}

TEST(PointsOf, PartsCoverEveryPointOnce) {
  const Box whole{{-1, 0, 0}, {7, 5, 4}}, inner{{1, 1, 1}, {5, 4, 3}};
  auto parts = subtract(whole, inner);
  parts.push_back(inner);
  for (Centring centring : centrings) {
    const Box all = points_of(whole, whole, centring, 3);
    std::int64_t points = 0;
    for (const Box& part : parts) {
      const Box some = points_of(part, whole, centring, 3);
      EXPECT_EQ(intersect(some, all), some);
      points += some.volume();
      for (const Box& other : parts)
        if (!(other == part)) {
          EXPECT_TRUE(intersect(some, points_of(other, whole, centring, 3)).empty()) << to_word(centring);
        }
    }
    EXPECT_EQ(points, all.volume()) << to_word(centring);
  }
}

TEST(PointsOf, AnEmptyBoxHasNone) {
  const Box whole{{0, 0, 0}, {6, 4, 1}}, none{{3, 4, 0}, {3, 4, 1}};
  EXPECT_TRUE(points_of(none, whole, Centring::node, 2).empty());
}

TEST(PointsOf, ASweepsArgumentsGiveThoseOfEachQuantity) {
  const Centring of[] = {Centring::cell, Centring::face_x};
  SweepArgs args;
  args.dims = 2;
  args.centrings = of;
  args.whole = {{0, 0, 0}, {6, 4, 1}};
  args.region = {{3, 0, 0}, {6, 4, 1}};
  EXPECT_EQ(args.points(0), args.region);
  EXPECT_EQ(args.points(1), (Box{{3, 0, 0}, {7, 4, 1}}));
}

// ---- growth and halos -----------------------------------------------------------------------------------------------

Widths all_around(int n, int dims) { return {n, dims > 1 ? n : 0, dims > 2 ? n : 0}; }

TEST(Halos, OfAStencilAreItsRadiusForEachStep) {
  for (int dims : {1, 2, 3})
    for (int radius : {1, 2})
      for (int steps : {1, 2, 5}) {
        const Step step = stencil_step(dims, radius, false);
        EXPECT_EQ(halos_of(step, step.stages[0], steps), std::vector<Widths>{all_around(radius * steps, dims)});
        const auto grown = growths(step.stages[0], steps);
        ASSERT_EQ(grown.size(), static_cast<std::size_t>(steps));
        for (int s = 0; s < steps; ++s)
          EXPECT_EQ(grown[s], std::vector<Widths>{all_around(radius * (steps - 1 - s), dims)}) << "step " << s;
      }
}

TEST(Halos, V8_ASweepIsCarriedOutOverWhatLaterOnesReadOfIt) {
  const App app = test::wave(2, 2);
  const Step step = resolved({app.quantities, app.stages}, 2, "wave");
  EXPECT_EQ(growths(step.stages[0], 1), (std::vector<std::vector<Widths>>{{{2, 2, 0}, {0, 0, 0}}}));
  EXPECT_EQ(halos_of(step, step.stages[0], 1), (std::vector<Widths>{{3, 3, 0}, {2, 2, 0}}));
  EXPECT_EQ(growths(step.stages[0], 2),
            (std::vector<std::vector<Widths>>{{{5, 5, 0}, {3, 3, 0}}, {{2, 2, 0}, {0, 0, 0}}}));
  EXPECT_EQ(halos_of(step, step.stages[0], 2), (std::vector<Widths>{{6, 6, 0}, {5, 5, 0}}));
}

TEST(Halos, OfAcousticsAreThoseOfThePressureAlone) {
  const App app = test::acoustics(3);
  const Step step = resolved({app.quantities, app.stages}, 3, "acoustics");
  EXPECT_EQ(halos_of(step, step.stages[0], 1), (std::vector<Widths>{{1, 1, 1}, {}, {}, {}}));
  EXPECT_EQ(halos_of(step, step.stages[1], 1), std::vector<Widths>(4));
}

TEST(Halos, OfAcousticsInOneStageGrowByACellInEachStep) {
  const App app = test::leapfrog(2);
  const Step step = resolved({app.quantities, app.stages}, 2, "leapfrog");
  EXPECT_EQ(halos_of(step, step.stages[0], 1), (std::vector<Widths>{{1, 1, 0}, {}, {}}));
  EXPECT_EQ(halos_of(step, step.stages[0], 3), (std::vector<Widths>{{3, 3, 0}, {2, 2, 0}, {2, 2, 0}}));
}

TEST(Halos, WhatAStageSaysItExchangesIsExchangedInSingleStepsAlone) {
  Step step = stencil_step(2, 1, false);
  step.stages[0].exchange = std::vector<Access>{{0, 3}};
  EXPECT_EQ(halos_of(step, step.stages[0], 1), (std::vector<Widths>{{3, 3, 3}}));
  EXPECT_EQ(halos_of(step, step.stages[0], 2), (std::vector<Widths>{{2, 2, 0}}));
  step.stages[0].exchange = std::vector<Access>{{0, 2}, {0, 3}, {0, 1}};
  EXPECT_EQ(halos_of(step, step.stages[0], 1), (std::vector<Widths>{{3, 3, 3}})) << "the widest";
  step.stages[0].exchange = std::vector<Access>{};
  EXPECT_EQ(halos_of(step, step.stages[0], 1), std::vector<Widths>(1));
}

TEST(Halos, AQuantityThatAnEarlierSweepOfTheStageWritesIsNotExchanged) {
  Step step;
  step.quantities = {{.name = "u", .slots = 2}, {.name = "h"}};
  step.stages = {stage_of("step", {sweep_spec("h", {{0, 1}}, {1}), sweep_spec("u", {{1, 1}}, {0})})};
  step = resolved(step, 2, "predictor");
  EXPECT_EQ(halos_of(step, step.stages[0], 1), (std::vector<Widths>{{2, 2, 0}, {}}));
}

TEST(Stages, SlotsAreChangedByTheStageThatWritesDoubleBufferedQuantities) {
  const App app = test::mixture(2), single = test::acoustics(2);
  const Step step{app.quantities, app.stages}, one{single.quantities, single.stages};
  EXPECT_EQ(step.slots(), 2);
  EXPECT_FALSE(flips(step, 0));
  EXPECT_TRUE(flips(step, 1));
  EXPECT_EQ(one.slots(), 1);
  EXPECT_FALSE(flips(one, 0));
}

// ---- refusals -------------------------------------------------------------------------------------------------------

/// The text of the UsageError that a changed step of two stages gets.
template <class Change>
std::string fault_of(const Change& change) {
  Step step;
  step.quantities = {{.name = "u", .slots = 2}, {.name = "v"}};
  step.stages = {stage_of("first", {sweep_spec("a", {{0, 1}, {1, 0}}, {0})}),
                 stage_of("second", {sweep_spec("b", {{0, 1}}, {1})})};
  step.stages[1].reductions = {{.name = "most"}};
  change(step);
  return test::error_of([&] { resolved(step, 2, "mine"); });
}

void expect_fault(const std::function<void(Step&)>& change, const std::string& part) {
  const std::string fault = fault_of(change);
  EXPECT_PART(fault, "app 'mine' cannot be run: ");
  EXPECT_PART(fault, part);
}

TEST(BadSteps, AStepThatCanBeIsResolvedWithoutAWord) {
  EXPECT_EQ(fault_of([](Step&) {}), "no error");
}

TEST(BadSteps, NeedQuantitiesStagesAndSweeps) {
  expect_fault([](Step& s) { s.quantities.clear(); }, "it has no quantities");
  expect_fault([](Step& s) { s.stages.clear(); }, "its step has no stages");
  expect_fault([](Step& s) { s.stages[1].sweeps.clear(); }, "stage 'second' has no sweeps");
}

TEST(BadSteps, QuantitiesHaveOneOrTwoSlots) {
  for (int slots : {0, 3, -1})
    expect_fault([&](Step& s) { s.quantities[1].slots = slots; },
                 "quantity 'v' has " + std::to_string(slots) + " slots; give it 1, or 2");
}

TEST(BadSteps, NamesTellThingsApart) {
  expect_fault([](Step& s) { s.quantities[1].name = "u"; }, "two quantities are called 'u'");
  expect_fault([](Step& s) { s.stages[1].name = "first"; }, "two stages are called 'first'");
  expect_fault([](Step& s) { s.stages[0].sweeps.push_back(sweep_spec("a", {}, {1})); },
               "two sweeps in stage 'first' are called 'a'");
  expect_fault([](Step& s) { s.stages[0].reductions = {{.name = "most"}}; }, "two reductions are called 'most'");
}

TEST(BadSteps, QuantitiesThatDoNotExistAreNeitherReadNorWrittenNorExchanged) {
  for (int number : {-1, 2}) {
    const std::string text = "quantity " + std::to_string(number) + ", which is none of the app's";
    expect_fault([&](Step& s) { s.stages[0].sweeps[0].reads[1].quantity = number; },
                 "sweep 'a' of stage 'first' reads " + text);
    expect_fault([&](Step& s) { s.stages[1].sweeps[0].writes[0] = number; },
                 "sweep 'b' of stage 'second' writes " + text);
    expect_fault(
        [&](Step& s) {
          s.stages[1].exchange = std::vector<Access>{{number, 1}};
        },
        "stage 'second' exchanges " + text);
  }
}

TEST(BadSteps, LayersAreNotNegative) {
  expect_fault([](Step& s) { s.stages[0].sweeps[0].reads[0].layers = -1; }, "a negative number of layers");
  expect_fault([](Step& s) { s.stages[0].exchange = std::vector<Access>{{0, -1}}; }, "a negative number of layers");
}

TEST(BadSteps, ASweepWritesSomethingOrGathersNumbersOfWhatItReads) {
  expect_fault([](Step& s) { s.stages[0].sweeps[0].writes.clear(); },
               "sweep 'a' of stage 'first' writes nothing and gathers no numbers");
  expect_fault(
      [](Step& s) {
        s.stages[1].sweeps[0].writes.clear();
        s.stages[1].sweeps[0].reads.clear();
      },
      "sweep 'b' of stage 'second' writes nothing and gathers no numbers");
}

TEST(BadSteps, ASweepDoesNotReadNeighboursOfWhatItOverwrites) {
  const auto read_neighbours = [](Step& s) { s.stages[1].sweeps[0].reads = {{1, 1}}; };
  expect_fault(read_neighbours, "sweep 'b' of stage 'second' reads neighbours of quantity 'v', which it overwrites");
  EXPECT_EQ(fault_of([&](Step& s) { read_neighbours(s), s.stages[1].sweeps[0].in_place = true; }), "no error");
  EXPECT_EQ(fault_of([](Step& s) { s.stages[1].sweeps[0].reads = {{1, 0}}; }), "no error") << "the point itself";
}

TEST(BadSteps, DoubleBufferedQuantitiesAreWrittenOnceInOneStage) {
  expect_fault([](Step& s) { s.quantities[1].slots = 2; }, "double-buffered quantities are written by several stages");
  expect_fault(
      [](Step& s) {
        s.stages[0].sweeps.push_back(sweep_spec("again", {{0, 1}}, {0}));
      },
      "quantity 'u' has two slots and is written twice in stage 'first'");
  EXPECT_EQ(fault_of([](Step& s) {
              s.quantities.push_back({.name = "w", .slots = 2});
              s.stages[0].sweeps.push_back(sweep_spec("other", {{0, 1}}, {2}));
            }),
            "no error")
      << "two of them in one stage";
}

TEST(BadSteps, AReductionHasASweepAndNumbers) {
  for (int sweep : {1, 7})
    expect_fault([&](Step& s) { s.stages[1].reductions[0].sweep = sweep; },
                 "reduction 'most' of stage 'second' has no sweep or no numbers");
  expect_fault([](Step& s) { s.stages[1].reductions[0].numbers = 0; }, "has no sweep or no numbers");
}

TEST(Stages, AReductionWithoutASweepIsOfTheLastOne) {
  const App app = test::leapfrog(2);
  Step step{app.quantities, app.stages};
  step.stages[0].reductions = {{.name = "energy"}};
  EXPECT_EQ(resolved(step, 2, "mine").stages[0].reductions[0].sweep, 2);
}

}  // namespace
}  // namespace haloscope
