// Steps of several stages as users write them, on all ranks, against plain loops over the whole grid: bytes of every
// field, numbers of every reduction.
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

// ---- waves on a staggered grid: cells have a pressure, faces a velocity ---------------------------------------------

enum : int { pressure, velocity_x, velocity_y };

template <class T, class P, class X, class Y>
T next_pressure(const P& p, const X& vx, const Y& vy, std::int64_t i, std::int64_t j) {
  return p(i, j) - T(0.3) * ((vx(i + 1, j) - vx(i, j)) + (vy(i, j + 1) - vy(i, j)));
}
template <class T, class P, class V>
T next_velocity(const P& p, const V& v, std::int64_t i, std::int64_t j, int d) {
  return v(i, j) - T(0.25) * (p(i, j) - (d == 0 ? p(i - 1, j) : p(i, j - 1)));
}

template <class T>
void sweep_pressure(const SweepArgs& a) {
  const auto p = a.write<T, 2>(pressure);
  const auto vx = a.read<T, 2>(velocity_x);
  const auto vy = a.read<T, 2>(velocity_y);
  for_points(a.points(pressure), [&](auto i, auto j) { p(i, j) = next_pressure<T>(p, vx, vy, i, j); });
}

template <class T>
void sweep_velocity(const SweepArgs& a) {
  const auto p = a.read<T, 2>(pressure);
  for (int d : {0, 1}) {
    const auto v = a.write<T, 2>(velocity_x + d);
    for_points(a.points(velocity_x + d), [&](auto i, auto j) { v(i, j) = next_velocity<T>(p, v, i, j, d); });
  }
  if (!a.reduced) return;
  for_points(a.region, [&](auto i, auto j) {
    a.reduced[0] += double{p(i, j)} * double{p(i, j)};
    a.reduced[1] += 1;
  });
}

template <void (*F64)(const SweepArgs&), void (*F32)(const SweepArgs&)>
void by_real(const SweepArgs& a) {
  return a.problem->real == Real::f64 ? F64(a) : F32(a);
}

/// Two stages, each with its own exchange. Form `wider` exchanges more layers than are read; form `joined` has one
/// stage and one exchange, so that ranks compute some of their neighbours' pressures too.
Step wave_step(const Problem& problem) {
  Step step;
  step.quantities = {{.name = "p", .element_bytes = 0},
                     {.name = "vx", .element_bytes = 0, .centring = Centring::face_x},
                     {.name = "vy", .element_bytes = 0, .centring = Centring::face_y}};
  const Reduction energy{.name = "energy",
                         .op = ReduceOp::sum,
                         .numbers = 2,
                         .mode = mode_of(problem),
                         .by = from_word<ReduceBy>(problem.parameters.word("by"))};
  step.stages = {{.name = "pressure",
                  .sweeps = {{.name = "pressure",
                              .reads = {{pressure, 0}, {velocity_x, 0}, {velocity_y, 0}},
                              .writes = {pressure},
                              .run = by_real<sweep_pressure<double>, sweep_pressure<float>>}}},
                 {.name = "velocity",
                  .sweeps = {{.name = "velocity",
                              .reads = {{pressure, 0}, {velocity_x, 0}, {velocity_y, 0}},
                              .writes = {velocity_x, velocity_y},
                              .run = by_real<sweep_velocity<double>, sweep_velocity<float>>}},
                  .reductions = {energy}}};
  if (problem.form == "wider") step.stages[1].exchange = {{pressure, 2}, {velocity_y, 1}};
  if (problem.form == "joined") {
    step.stages[1].sweeps.insert(step.stages[1].sweeps.begin(), step.stages[0].sweeps[0]);
    step.stages.erase(step.stages.begin());
  }
  return step;
}

const std::string& waves() {
  static const App app{.name = "test-waves",
                       .dims = 2,
                       .parameters = {mode_parameter(), way_parameter()},
                       .forms = {"needed", "wider", "joined"},
                       .reals = {"f64", "f32"},
                       .step = wave_step};
  return known(app);
}

/// The whole grid by plain loops.
template <class T>
struct Waves {
  Whole<T> p, vx, vy;
  double energy = 0;

  explicit Waves(const Choice& c) : p(c, pressure), vx(c, velocity_x), vy(c, velocity_y) {}

  void step() {
    energy = 0;
    for_points(p.owned(), [&](auto i, auto j) {
      p(i, j) = next_pressure<T>(p, vx, vy, i, j);
      energy += double{p(i, j)} * double{p(i, j)};
    });
    for (int d : {0, 1}) {
      Whole<T>& v = d == 0 ? vx : vy;
      const Whole<T> before = v;  // of a plane that the grid shares with itself there is one copy
      for_points(v.owned(), [&](auto i, auto j) { v(i, j) = next_velocity<T>(p, before, i, j, d); });
    }
  }
};

constexpr int wave_steps = 5;

/// @return the energy.
template <class T>
std::vector<double> expect_waves(const Choice& c) {
  SCOPED_TRACE(describe(c));
  Waves<T> expected(c);
  for (int n = 0; n < wave_steps; ++n) expected.step();
  Run run(MPI_COMM_WORLD, c);
  run.initialise();
  const int last = run.stages() - 1;
  EXPECT_TRUE(run.reduced(last, 0).empty());
  EXPECT_EQ(run.advance(wave_steps, true).steps, wave_steps);
  EXPECT_EQ(wrong_points(run, pressure, expected.p), 0);
  EXPECT_EQ(wrong_points(run, velocity_x, expected.vx), 0);
  EXPECT_EQ(wrong_points(run, velocity_y, expected.vy), 0);
  EXPECT_TRUE(run.canaries_alive());
  const std::vector<double> numbers = numbers_of(run, last, 0);
  EXPECT_EQ(numbers.size(), 2u);
  if (numbers.size() != 2) return numbers;
  EXPECT_NEAR(numbers[0], expected.energy, 1e-13 * expected.energy);
  EXPECT_EQ(numbers[1], static_cast<double>(c.grid.cells[0] * c.grid.cells[1])) << "cells gathered";
  return numbers;
}

std::vector<double> expect_waves_of(const Choice& c) {
  return c.real == Real::f64 ? expect_waves<double>(c) : expect_waves<float>(c);
}

const char* const transports[] = {"ordered/p2p",
                                  "direct:merged/p2p",
                                  "ordered/persistent",
                                  "ordered/shared",
                                  "ordered/rma-fence",
                                  "direct/neighbor",
                                  "ordered/partitioned",
                                  "direct/shared:pull",
                                  "ordered/shared:packed",
                                  "ordered:merged/neighbor",
                                  "direct/rma-lockall",
                                  "ordered:self-first/p2p",
                                  "ordered:fields=serial/p2p",
                                  "direct:fields=serial/shared",
                                  "ordered:fields=serial/rma-fence",
                                  "ordered:merged,fields=serial/neighbor",
                                  "ordered:fields=pipelined/persistent",
                                  "direct:fields=pipelined/p2p",
                                  "direct:fields=pipelined/shared:pull",
                                  "ordered:self-first,fields=pipelined/rma-pscw:per-message"};

TEST(Steps, TwoStagesOnAStaggeredGridGiveTheBytesOfTheLoopByEveryScheduleAndTransport) {
  Every one(5, 11);
  int ran = 0;
  for (const auto& periodic : periodicities)
    for (Real real : {Real::f64, Real::f32})
      for (const char* strategy : transports) {
        Choice c = flat_choice(waves(), periodic);
        c.real = real;
        c.strategy = strategy;
        const std::vector<Choice> all = by_schedules(c);
        EXPECT_GE(all.size(), c.strategy.pattern == Pattern::ordered ? 4u : 3u);
        for (const Choice& choice : all) {
          if (!one.skips()) ran += run_if_available([&] { expect_waves_of(choice); });
        }
      }
  EXPECT_GE(ran, 10);
}

TEST(Steps, ReductionsOfEveryModeAreTheSameOnAllRanksAndFromRunToRun) {
  Every one(7, 13);
  for (const std::string& way : haloscope::Words<ReduceBy>::all())
    for (const std::string& mode : modes())
      for (const auto& periodic : periodicities)
        for (const char* strategy : {"ordered/p2p", "direct/shared:packed"}) {
          if (way == "lists" && mode != "blocking") continue;
          Choice c = flat_choice(waves(), periodic);
          c.strategy = strategy;
          c.set["mode"] = mode;
          c.set["by"] = way;
          for (const Choice& choice : by_schedules(c)) {
            if (one.skips()) continue;
            const std::vector<double> first = expect_waves_of(choice);
            EXPECT_EQ(expect_waves_of(choice), first) << describe(choice);
          }
        }
}

/// True if an operation comes after one of a kind.
bool comes_after(const Program& program, int op, OpKind kind) {
  const auto& before = program.ops[op].after;
  return std::any_of(before.begin(), before.end(),
                     [&](int b) { return program.ops[b].kind == kind || comes_after(program, b, kind); });
}

/// Otherwise this rank would wait for a neighbour that is late because it waits for these messages.
TEST(Steps, RanksThatWaitForNumbersHaveSentTheirMessages) {
  for (const std::string& mode : modes()) {
    Choice c = flat_choice(waves(), {true, true});
    c.set["mode"] = mode;
    for (const Choice& choice : by_schedules(c)) {
      haloscope::Run run(MPI_COMM_WORLD, choice);
      const Program& program = run.stage(1).program();
      const bool sends = run.stage(1).plan().messages_out() > 0;
      const OpKind waiting = mode == "blocking" ? OpKind::reduce : OpKind::reduced;
      for (int op = 0; op < static_cast<int>(program.ops.size()); ++op)
        if (world_size() > 1 && program.ops[op].kind == waiting) {
          EXPECT_EQ(comes_after(program, op, OpKind::complete), sends) << describe(choice);
        }
    }
  }
}

/// Blocks large enough for several threads to have parts of every sweep.
TEST(Steps, ThreadsGiveTheSameBytesAndTheSameSumsFromRunToRun) {
  if (world_size() > 2) GTEST_SKIP() << "threads and ranks that share cores: left to few ranks";
  for (const std::string& mode : modes())
    for (int threads : {2, 3}) {
      Choice c = flat_choice(waves(), {true, false}, {131, 97, 1});
      c.threads = threads;
      c.set["mode"] = mode;
      for (const Choice& choice : by_schedules(c)) {
        const std::vector<double> first = expect_waves_of(choice);
        for (int again = 0; again < 3; ++again) EXPECT_EQ(expect_waves_of(choice), first) << describe(choice);
      }
    }
}

TEST(Steps, StagesMayHaveStrategiesOfTheirOwn) {
  const struct {
    const char *all, *pressure, *velocity;
  } pairs[] = {{"ordered/p2p", "direct/persistent", ""},
               {"ordered/p2p", "", "direct:merged/neighbor"},
               {"direct/p2p", "ordered/rma-fence", "ordered/persistent"},
               {"ordered/p2p", "ordered/shared", ""},
               {"ordered/persistent", "", "ordered/shared:packed"},
               {"ordered/neighbor", "ordered/rma-pscw", "ordered/rma-fence"},
               {"ordered/p2p", "ordered/partitioned", "ordered:self-first/p2p"}};
  Every one(3, 5);
  for (const auto& pair : pairs)
    for (const auto& periodic : periodicities) {
      Choice c = flat_choice(waves(), periodic);
      c.strategy = pair.all;
      if (*pair.pressure) c.stage_strategies["pressure"] = pair.pressure;
      if (*pair.velocity) c.stage_strategies["velocity"] = pair.velocity;
      for (const Choice& choice : by_schedules(c)) {
        if (!one.skips()) run_if_available([&] { expect_waves_of(choice); });
      }
    }
}

TEST(Steps, AStageMayExchangeMoreThanItReads) {
  for (const auto& periodic : periodicities)
    for (const char* strategy : {"reference", "ordered/p2p", "direct/shared"}) {
      Choice c = flat_choice(waves(), periodic);
      c.form = "wider";
      c.strategy = strategy;
      for (const Choice& choice : by_schedules(c)) expect_waves_of(choice);
    }
}

/// Sent data is overwritten by the sweeps of the same stage.
TEST(Steps, OneStageOfTwoSweepsGivesTheBytesOfTheLoopByEveryScheduleAndTransport) {
  Every one(3, 7);
  for (const auto& periodic : periodicities)
    for (const char* strategy : transports) {
      Choice c = flat_choice(waves(), periodic);
      c.form = "joined";
      c.strategy = strategy;
      for (const Choice& choice : by_schedules(c)) {
        if (!one.skips()) run_if_available([&] { expect_waves_of(choice); });
      }
    }
}

TEST(Steps, RowsOfRanksAndColumnsOfRanksGiveTheSameBytes) {
  const std::string n = std::to_string(world_size());
  for (const std::string& grid : {n + "x1", "1x" + n})
    for (const auto& periodic : periodicities) {
      Choice c = flat_choice(waves(), periodic, {11, 13, 1});
      c.process_grid = grid;
      expect_waves_of(c);
      c.schedule = "split";
      expect_waves_of(c);
    }
}

TEST(Steps, AStrategyOfAStageThatIsNotThereIsRefused) {
  Choice c = flat_choice(waves(), {true, true});
  c.stage_strategies["presure"] = "ordered/p2p";
  EXPECT_PART(illegal(c), "pressure");
  c.stage_strategies = {{"pressure", "ordered/staged"}};
  EXPECT_PART(illegal(c), "ordered/staged");
  c.stage_strategies.clear();
  c.depth = 2;
  EXPECT_PART(illegal(c), "--depth 1");
}

// ---- two quantities in one exchange, read at different distances ----------------------------------------------------

enum : int { salt, heat, flow };

template <class A, class B>
double next_salt(const A& a, const B& b, std::int64_t i, std::int64_t j) {
  return 0.5 * a(i, j) + 0.125 * ((a(i - 1, j) + a(i + 1, j)) + (a(i, j - 1) + a(i, j + 1))) +
         0.01 * (b(i - 2, j) - b(i, j + 2));
}
template <class A, class B>
double next_heat(const A& a, const B& b, std::int64_t i, std::int64_t j) {
  return 0.75 * b(i, j) + 0.0625 * ((b(i - 1, j - 1) + b(i + 1, j + 1)) + (b(i + 2, j) + b(i, j - 2))) - 0.02 * a(i, j);
}
template <class A>
double flow_of(const A& a, std::int64_t i, std::int64_t j) {
  return a(i + 1, j) - a(i, j - 1);
}

void gather_largest(const SweepArgs& a, double value) {
  if (a.reduced) a.reduced[0] = std::max(a.reduced[0], value);
}

/// Salt and heat together, from the old ones.
void sweep_both(const SweepArgs& a) {
  const auto s = a.read<double, 2>(salt), h = a.read<double, 2>(heat);
  const auto next_s = a.write<double, 2>(salt), next_h = a.write<double, 2>(heat);
  for_points(a.points(salt), [&](std::int64_t i, std::int64_t j) {
    next_s(i, j) = next_salt(s, h, i, j);
    next_h(i, j) = next_heat(s, h, i, j);
    gather_largest(a, next_s(i, j));
  });
}
void sweep_heat(const SweepArgs& a) {
  const auto s = a.read<double, 2>(salt), h = a.read<double, 2>(heat);
  const auto next = a.write<double, 2>(heat);
  for_points(a.points(heat), [&](auto i, auto j) { next(i, j) = next_heat(s, h, i, j); });
}
/// Salt from the old salt and the new heat.
void sweep_salt(const SweepArgs& a) {
  const auto s = a.read<double, 2>(salt), h = a.read<double, 2>(heat);
  const auto next = a.write<double, 2>(salt);
  for_points(a.points(salt), [&](std::int64_t i, std::int64_t j) {
    next(i, j) = next_salt(s, h, i, j);
    gather_largest(a, next(i, j));
  });
}
void sweep_flow(const SweepArgs& a) {
  const auto s = a.read<double, 2>(salt);
  const auto f = a.write<double, 2>(flow);
  for_points(a.points(flow), [&](auto i, auto j) { f(i, j) = flow_of(s, i, j); });
}
/// Salt and heat from the flow, which belongs to the step and has one slot.
void sweep_by_flow(const SweepArgs& a) {
  const auto f = a.read<double, 2>(flow), s = a.read<double, 2>(salt), h = a.read<double, 2>(heat);
  const auto next_s = a.write<double, 2>(salt), next_h = a.write<double, 2>(heat);
  for_points(a.points(salt), [&](std::int64_t i, std::int64_t j) {
    next_s(i, j) = next_salt(s, f, i, j);
    next_h(i, j) = next_heat(f, h, i, j);
    gather_largest(a, next_s(i, j));
  });
}

Step pair_step(const Problem& problem) {
  Step step;
  step.quantities = {{.name = "salt", .slots = 2}, {.name = "heat", .slots = 2}, {.name = "flow"}};
  const SweepSpec both{
      .name = "both", .reads = {{salt, 2}, {heat, 2}}, .writes = {salt, heat}, .box_stencil = true, .run = sweep_both};
  const SweepSpec first{
      .name = "heat", .reads = {{salt, 0}, {heat, 2}}, .writes = {heat}, .box_stencil = true, .run = sweep_heat};
  const SweepSpec second{.name = "salt", .reads = {{salt, 1}, {heat, 2}}, .writes = {salt}, .run = sweep_salt};
  const SweepSpec flow_first{.name = "flow", .reads = {{salt, 1}}, .writes = {flow}, .run = sweep_flow};
  const SweepSpec by_flow{.name = "by flow",
                          .reads = {{salt, 1}, {heat, 2}, {flow, 2}},
                          .writes = {salt, heat},
                          .box_stencil = true,
                          .run = sweep_by_flow};
  std::vector<SweepSpec> sweeps{both};
  if (problem.form == "chained") sweeps = {first, second};
  if (problem.form == "through") sweeps = {flow_first, by_flow};
  step.stages = {{.sweeps = sweeps, .reductions = {{.name = "largest", .op = ReduceOp::max, .last_only = true}}}};
  return step;
}

const std::string& pairs() {
  static const App app{.name = "test-pairs", .dims = 2, .forms = {"both", "chained", "through"}, .step = pair_step};
  return known(app);
}

struct Pair {
  Whole<double> s, h, f;
  std::string form;
  double largest = 0;

  explicit Pair(const Choice& c) : s(c, salt), h(c, heat), f(c, flow), form(c.form) {}

  void step() {
    const Whole<double> s0 = s, h0 = h;
    const Whole<double>* of_salt = &h0;
    const Whole<double>* of_heat = &s0;
    if (form == "through") {
      for_points(f.owned(), [&](auto i, auto j) { f(i, j) = flow_of(s0, i, j); });
      of_salt = of_heat = &f;
    }
    for_points(h.owned(), [&](auto i, auto j) { h(i, j) = next_heat(*of_heat, h0, i, j); });
    if (form == "chained") of_salt = &h;
    largest = -1e300;
    for_points(s.owned(), [&](std::int64_t i, std::int64_t j) {
      s(i, j) = next_salt(s0, *of_salt, i, j);
      largest = std::max(largest, s(i, j));
    });
  }
};

void expect_pair(const Choice& c, int steps) {
  SCOPED_TRACE(describe(c) + " steps " + std::to_string(steps));
  Pair expected(c);
  for (int n = 0; n < steps; ++n) expected.step();
  Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(steps, true);
  EXPECT_EQ(wrong_points(run, salt, expected.s), 0);
  EXPECT_EQ(wrong_points(run, heat, expected.h), 0);
  if (c.form == "through") {
    EXPECT_EQ(wrong_points(run, flow, expected.f), 0);
  }
  EXPECT_TRUE(run.canaries_alive());
  EXPECT_EQ(numbers_of(run, 0, 0), std::vector{expected.largest});
}

TEST(Steps, TwoQuantitiesShareAnExchangeAtEveryDepth) {
  Every one(7, 29);
  int ran = 0;
  for (const char* form : {"both", "chained", "through"})
    for (const auto& periodic : periodicities)
      for (const char* strategy : {"reference", "ordered/p2p", "direct:merged/p2p", "ordered:fields=none/persistent",
                                   "ordered/shared", "direct/neighbor"})
        for (int depth : {1, 2, 3})
          for (Substeps substeps : {Substeps::full, Substeps::shrink}) {
            if (depth == 1 && substeps != Substeps::full) continue;
            Choice c = flat_choice(pairs(), periodic, {41, 39, 1});
            c.form = form;
            c.strategy = strategy;
            c.depth = depth;
            c.substeps = substeps;
            for (const Choice& choice : by_schedules(c)) {
              if (one.skips()) continue;
              expect_pair(choice, 7);  // a last, shorter round at depths 2 and 3
              ++ran;
            }
          }
  EXPECT_GE(ran, 10);
}

TEST(Steps, RunsOfAnyLengthEndWithTheNumbersOfTheirLastStep) {
  for (int steps : {1, 2, 3, 5, 6}) {
    Choice c = flat_choice(pairs(), {true, false}, {41, 39, 1});
    c.form = "both";
    c.depth = 3;
    c.substeps = Substeps::shrink;
    if (illegal(c).empty()) expect_pair(c, steps);
  }
}

// ---- a stage that repeats: an implicit step, relaxed until its residual is small ------------------------------------

enum : int { wanted, found };

double relaxed(double right, double west, double east, double south, double north) {
  return (right + 0.5 * ((west + east) + (south + north))) / 3;
}

/// The present values become the right-hand side.
void sweep_right_hand_side(const SweepArgs& a) {
  const auto u = a.read<double, 2>(found);
  const auto f = a.write<double, 2>(wanted);
  for_points(a.points(wanted), [&](auto i, auto j) { f(i, j) = u(i, j); });
}
void sweep_relax(const SweepArgs& a) {
  const auto f = a.read<double, 2>(wanted), u = a.read<double, 2>(found);
  const auto next = a.write<double, 2>(found);
  for_points(a.points(found), [&](std::int64_t i, std::int64_t j) {
    next(i, j) = relaxed(f(i, j), u(i - 1, j), u(i + 1, j), u(i, j - 1), u(i, j + 1));
    if (a.reduced) a.reduced[0] = std::max(a.reduced[0], std::abs(next(i, j) - u(i, j)));
  });
}

constexpr int most_relaxations = 40;

Step implicit_step(const Problem& problem) {
  Step step;
  step.quantities = {{.name = "wanted"}, {.name = "found", .slots = 2}};
  step.stages = {
      {.name = "begin",
       .sweeps = {{.name = "copy", .reads = {{found, 0}}, .writes = {wanted}, .run = sweep_right_hand_side}}},
      {.name = "relax",
       .sweeps = {{.name = "relax", .reads = {{wanted, 0}, {found, 1}}, .writes = {found}, .run = sweep_relax}},
       .reductions = {{.name = "residual", .op = ReduceOp::max, .mode = mode_of(problem)}},
       .repeats = 1,
       .most = most_relaxations}};
  return step;
}

const std::string& implicit() {
  static const App app{
      .name = "test-implicit",
      .dims = 2,
      .parameters = {mode_parameter(), {.name = "residual", .value = 1e-3, .help = "Small enough.", .least = 0}},
      .step = implicit_step,
      .finished = [](const Problem& p, int stage, std::span<const double> reduced, std::span<const double>) {
        return stage == 1 && reduced[0] < p.parameters.real("residual");
      }};
  return known(app);
}

struct Implicit {
  Whole<double> f, u;
  double enough, residual = 0;
  std::int64_t relaxations = 0;

  explicit Implicit(const Choice& c) : f(c, wanted), u(c, found), enough(problem_of(c).parameters.real("residual")) {}

  void step() {
    for_points(f.owned(), [&](auto i, auto j) { f(i, j) = u(i, j); });
    int times = 0;
    do relax();
    while (++times < most_relaxations && residual >= enough);
    relaxations += times;
  }

 private:
  void relax() {
    const Whole<double> b = u;
    residual = 0;
    for_points(u.owned(), [&](std::int64_t i, std::int64_t j) {
      u(i, j) = relaxed(f(i, j), b(i - 1, j), b(i + 1, j), b(i, j - 1), b(i, j + 1));
      residual = std::max(residual, std::abs(u(i, j) - b(i, j)));
    });
  }
};

void expect_implicit(const Choice& c) {
  SCOPED_TRACE(describe(c));
  constexpr int steps = 3;
  Implicit expected(c);
  for (int n = 0; n < steps; ++n) expected.step();
  Run run(MPI_COMM_WORLD, c);
  run.initialise();
  run.advance(steps, true);
  EXPECT_EQ(run.stage(1).counts().reductions, expected.relaxations);
  EXPECT_EQ(wrong_points(run, wanted, expected.f), 0);
  EXPECT_EQ(wrong_points(run, found, expected.u), 0);
  EXPECT_EQ(numbers_of(run, 1, 0), std::vector{expected.residual});
}

TEST(Steps, AStageRepeatsAsOftenAsTheLoopDoes) {
  Every one(3, 11);
  for (const char* mode : {"blocking", "nonblocking"})
    for (const auto& periodic : periodicities)
      for (double residual : {0.2, 1e-3})
        for (const char* strategy : {"reference", "ordered/p2p", "direct/persistent", "ordered/shared"}) {
          Choice c = flat_choice(implicit(), periodic);
          c.set["mode"] = mode;
          c.set["residual"] = residual;
          c.strategy = strategy;
          for (const Choice& choice : by_schedules(c))
            if (!one.skips()) expect_implicit(choice);
        }
}

TEST(Steps, AStageThatNeverHasEnoughRepeatsAsOftenAsItMay) {
  Choice c = flat_choice(implicit(), {true, false});
  c.set["residual"] = 0.0;
  expect_implicit(c);
}

// ---- largest and least, three numbers each --------------------------------------------------------------------------

/// The value, the value times the line it is in, and the line.
template <class Take>
void gather_three(double* into, double value, std::int64_t line, Take take) {
  const double three[] = {value, value * static_cast<double>(line), static_cast<double>(line)};
  for (int k = 0; k < 3; ++k) into[k] = take(into[k], three[k]);
}
double larger_of(double a, double b) { return std::max(a, b); }
double lesser_of(double a, double b) { return std::min(a, b); }

template <class V>
double average(const V& v, std::int64_t i, std::int64_t j) {
  return 0.25 * ((v(i - 1, j) + v(i + 1, j)) + (v(i, j - 1) + v(i, j + 1)));
}

void sweep_with_largest(const SweepArgs& a) {
  const auto u = a.read<double, 2>(0);
  const auto v = a.write<double, 2>(1);
  for_points(a.points(1), [&](std::int64_t i, std::int64_t j) {
    v(i, j) = average(u, i, j);
    if (a.reduced) gather_three(a.reduced, v(i, j), a.first[1] + j, larger_of);
  });
}
void sweep_with_least(const SweepArgs& a) {
  const auto v = a.read<double, 2>(1);
  const auto u = a.write<double, 2>(0);
  for_points(a.points(0), [&](std::int64_t i, std::int64_t j) {
    u(i, j) = 0.9 * v(i, j) + 0.01;
    if (a.reduced) gather_three(a.reduced, u(i, j), a.first[1] + j, lesser_of);
  });
}

/// Each sweep gathers three separate numbers.
Step extremes_step(const Problem& problem) {
  const auto mode = mode_of(problem);
  Step step;
  step.quantities = {{.name = "u"}, {.name = "v"}};
  step.stages = {{.sweeps = {{.name = "there", .reads = {{0, 1}}, .writes = {1}, .run = sweep_with_largest},
                             {.name = "back", .reads = {{1, 0}}, .writes = {0}, .run = sweep_with_least}},
                  .reductions = {{.name = "largest", .op = ReduceOp::max, .numbers = 3, .mode = mode, .sweep = 0},
                                 {.name = "least", .op = ReduceOp::min, .numbers = 3, .mode = mode, .sweep = 1}}}};
  return step;
}

const std::string& extremes() {
  static const App app{.name = "test-extremes", .dims = 2, .parameters = {mode_parameter()}, .step = extremes_step};
  return known(app);
}

struct Extremes {
  Whole<double> u, v;
  std::vector<double> largest, least;

  explicit Extremes(const Choice& c) : u(c, 0), v(c, 1) {}

  void step() {
    largest.assign(3, -1e300);
    least.assign(3, 1e300);
    for_points(v.owned(), [&](std::int64_t i, std::int64_t j) {
      v(i, j) = average(u, i, j);
      gather_three(largest.data(), v(i, j), j, larger_of);
    });
    for_points(u.owned(), [&](std::int64_t i, std::int64_t j) {
      u(i, j) = 0.9 * v(i, j) + 0.01;
      gather_three(least.data(), u(i, j), j, lesser_of);
    });
  }
};

TEST(Steps, LargestAndLeastOfThreeNumbersEachAreExact) {
  Every one(5, 11);
  for (const std::string& mode : modes())
    for (const auto& periodic : periodicities)
      for (const char* strategy : {"reference", "ordered/p2p", "direct/shared"})
        for (int threads : {1, 2}) {
          Choice c = flat_choice(extremes(), periodic, {73, 67, 1});
          c.set["mode"] = mode;
          c.strategy = strategy;
          c.threads = threads;
          for (const Choice& choice : by_schedules(c)) {
            if (one.skips()) continue;
            SCOPED_TRACE(describe(choice));
            Extremes expected(choice);
            for (int n = 0; n < 4; ++n) expected.step();
            haloscope::Run run(MPI_COMM_WORLD, choice);
            run.initialise();
            run.advance(4, true);
            EXPECT_EQ(wrong_points(run, 0, expected.u), 0);
            EXPECT_EQ(wrong_points(run, 1, expected.v), 0);
            EXPECT_EQ(numbers_of(run, 0, 0), expected.largest);
            EXPECT_EQ(numbers_of(run, 0, 1), expected.least);
          }
        }
}

/// The largest |v|, the numbers of points above 0 and below, and the sum over columns 0 to 3.
void sweep_gathering(const SweepArgs& a) {
  const auto u = a.read<double, 2>(0);
  if (!a.reduced) return;
  for_points(a.region, [&](std::int64_t i, std::int64_t j) {
    a.reduced[0] = std::max(a.reduced[0], std::abs(u(i, j)));
    a.reduced[u(i, j) > 0 ? 1 : 2] += 1;
    a.reduced[3 + (a.first[0] + i) % 4] += static_cast<double>(a.first[1] + j);
  });
}

const std::string& gathering() {
  static const App app{
      .name = "test-gathering", .dims = 2, .parameters = {mode_parameter()}, .step = [](const Problem& problem) {
        const ReduceMode mode = mode_of(problem);
        Step step;
        step.quantities = {{.name = "u"}};
        step.stages = {
            {.sweeps = {{.name = "look", .reads = {{0, 1}}, .writes = {}, .run = sweep_gathering}},
             .reductions = {
                 {.name = "largest", .op = ReduceOp::max, .mode = mode},
                 {.name = "signs", .numbers = 2, .mode = mode, .by = ReduceBy::gather, .type = NumberType::integer},
                 {.name = "columns", .numbers = 4, .collectives = 2, .by = ReduceBy::lists}}}};
        return step;
      }};
  return known(app);
}

TEST(Steps, ASweepGathersTheNumbersOfSeveralReductions) {
  Every one(3, 5);
  for (const std::string& mode : modes())
    for (const auto& periodic : periodicities)
      for (int threads : {1, 2})
        for (int piece : {0, 1}) {
          Choice c = flat_choice(gathering(), periodic, {37, 33, 1});
          c.set["mode"] = mode;
          c.threads = threads;
          c.piece = piece;
          for (const Choice& choice : by_schedules(c)) {
            if (one.skips()) continue;
            SCOPED_TRACE(describe(choice));
            const Whole<double> u(choice, 0);
            std::vector<double> largest(1), signs(2), columns(4);
            for_points(u.owned(), [&](std::int64_t i, std::int64_t j) {
              largest[0] = std::max(largest[0], std::abs(u(i, j)));
              signs[u(i, j) > 0 ? 0 : 1] += 1;
              columns[i % 4] += static_cast<double>(j);
            });
            haloscope::Run run(MPI_COMM_WORLD, choice);
            run.initialise();
            run.advance(3, true);
            EXPECT_EQ(numbers_of(run, 0, 0), largest);
            EXPECT_EQ(numbers_of(run, 0, 1), signs);
            EXPECT_EQ(numbers_of(run, 0, 2), columns);
            EXPECT_EQ(run.stage(0).counts().reductions, 3 * (1 + 1 + 2 * 2));
          }
        }
}

/// Only numbers of own cells count, and numbers that a sweep gathers for several reductions are required in the same
/// steps.
TEST(Steps, ReductionsThatNoSweepCanGatherAreRefused) {
  const auto refusal = [](const Step& step) -> std::string { return error_of([&] { resolved(step, 2, "mine"); }); };
  const Choice c = flat_choice(extremes(), {true, true});
  Step step = extremes_step(problem_of(c));
  EXPECT_EQ(refusal(step), "no error");
  step.stages[0].sweeps[1].reads = {{1, 1}};
  EXPECT_PART(refusal(step), "beyond the rank's own cells");
  step = extremes_step(problem_of(c));
  step.stages[0].reductions[1].sweep = 0;
  EXPECT_EQ(refusal(step), "no error");
  step.stages[0].reductions[1].last_only = true;
  EXPECT_PART(refusal(step), "two reductions");
}

TEST(Steps, GathersThatCannotBeAreRefusedWithARemedy) {
  const auto refusal = [](const Reduction& reduction, bool in_place = false) -> std::string {
    Step step = stencil_step(2, 1, false);
    step.quantities[0].slots = 1;
    step.stages[0].sweeps[0].in_place = in_place;
    step.stages[0].sweeps[0].reads[0].layers = in_place;
    step.stages[0].reductions = {reduction};
    return error_of([&] { resolved(step, 2, "mine"); });
  };
  const Reduction lists{.name = "all", .numbers = 2, .by = ReduceBy::lists};
  EXPECT_EQ(refusal(lists), "no error");
  EXPECT_PART(refusal(lists, true), "let it go by 'reduce'");
  for (const ReduceMode mode : {ReduceMode::nonblocking, ReduceMode::deferred}) {
    Reduction late = lists;
    late.mode = mode;
    EXPECT_PART(refusal(late), "make it blocking");
    late.by = ReduceBy::gather;
    EXPECT_EQ(refusal(late), "no error");
    late.collectives = 2;
    EXPECT_PART(refusal(late), "only for a blocking reduction");
  }
  for (const NumberType type : {NumberType::integer, NumberType::character}) {
    const Reduction reduced{.name = "all", .type = type};
    EXPECT_PART(refusal(reduced), "its type be 'real'");
  }
}

}  // namespace
}  // namespace haloscope::test
