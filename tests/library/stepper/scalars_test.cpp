// Scalars: numbers that all ranks compute from reductions and sweeps read, as a time step that follows from the fields.
#include "step_rig.hpp"

namespace haloscope::test {
namespace {

/// u' = u + pace (average of the neighbours - u), with a pace that follows from the largest |u|, found by a sweep that
/// writes nothing.
void sweep_largest(const SweepArgs& a) {
  const auto u = a.read<double, 2>(0);
  if (!a.reduced) return;
  for_points(a.region, [&](auto i, auto j) { a.reduced[0] = std::max(a.reduced[0], std::abs(u(i, j))); });
}

template <class V>
double moved_by(const V& u, double pace, std::int64_t i, std::int64_t j) {
  return u(i, j) + pace * (0.25 * ((u(i - 1, j) + u(i + 1, j)) + (u(i, j - 1) + u(i, j + 1))) - u(i, j));
}

void sweep_paced(const SweepArgs& a) {
  const auto u = a.read<double, 2>(0);
  const auto next = a.write<double, 2>(0);
  for_points(a.region, [&](auto i, auto j) { next(i, j) = moved_by(u, a.scalars[0], i, j); });
}

double pace_of(std::int64_t step, double largest) { return 1 / (1.0 + largest + 0.25 * static_cast<double>(step % 3)); }

Step paced_step(const Problem& problem) {
  Step step;
  step.quantities = {{.name = "u", .slots = 2}};
  step.stages = {{.name = "look",
                  .sweeps = {{.name = "largest", .reads = {{0, 0}}, .writes = {}, .run = sweep_largest}},
                  .reductions = {{.name = "largest", .op = ReduceOp::max, .mode = mode_of(problem)}}},
                 {.name = "move", .sweeps = {{.name = "move", .reads = {{0, 1}}, .writes = {0}, .run = sweep_paced}}}};
  return step;
}

const std::string& paced() {
  static const App app{
      .name = "test-paced",
      .dims = 2,
      .parameters = {mode_parameter()},
      .step = paced_step,
      .scalars = {"pace", "updates"},
      .update =
          [](const Problem&, const StageStart& at, std::span<double> scalars) {
            if (at.stage == 1) scalars[0] = pace_of(at.step, at.reduced[0]);
            scalars[1] += 1;
          },
  };
  return known(app);
}

Whole<double> paced_loop(const Choice& c, int steps) {
  Whole<double> u(c, 0);
  for (int n = 0; n < steps; ++n) {
    const Whole<double> old = u;
    double largest = 0;
    for_points(u.owned(), [&](auto i, auto j) { largest = std::max(largest, std::abs(old(i, j))); });
    for_points(u.owned(), [&](auto i, auto j) { u(i, j) = moved_by(old, pace_of(n, largest), i, j); });
  }
  return u;
}

TEST(Scalars, FollowFromReductionsByEveryScheduleAndTransport) {
  Every one(2, 9);
  for (const char* mode : {"blocking", "nonblocking"})
    for (const auto& periodic : periodicities)
      for (const char* strategy : {"reference", "ordered/p2p", "direct/persistent", "ordered/shared"}) {
        Choice c = flat_choice(paced(), periodic);
        c.set["mode"] = mode;
        c.strategy = strategy;
        const Whole<double> expected = paced_loop(c, 6);
        for (const Choice& choice : by_schedules(c)) {
          if (one.skips()) continue;
          SCOPED_TRACE(describe(choice));
          haloscope::Run run(MPI_COMM_WORLD, choice);
          run.initialise();
          run.advance(1, true);
          run.advance(5, true);  // earlier numbers are not forgotten
          EXPECT_EQ(wrong_points(run, 0, expected), 0);
          EXPECT_EQ(run.scalars()[1], 12);
        }
      }
}

TEST(Scalars, BeginAtZeroWithNewInitialData) {
  haloscope::Run run(MPI_COMM_WORLD, flat_choice(paced(), {true, true}));
  for (int i = 0; i < 2; ++i) {
    run.initialise();
    EXPECT_EQ(run.scalars()[1], 0);
    run.advance(2);
    EXPECT_EQ(run.scalars()[1], 4);
  }
}

TEST(Scalars, CannotWaitForDeferredNumbers) {
  Choice c = flat_choice(paced(), {true, true});
  c.set["mode"] = "deferred";
  EXPECT_PART(illegal(c), "deferred reduction 'largest' come after the scalars");
}

TEST(Scalars, NeedSomethingThatUpdatesThem) {
  App app = find_app(paced());
  app.name = "test-still";
  app.update = {};
  EXPECT_THROW(add_app(app), UsageError);
}

}  // namespace
}  // namespace haloscope::test
