// Figure `precision`: the cost of ending poisson2d's Jacobi method by the residual instead of a number of iterations.
// Two ranks, the study's matrix of 4105 x 4105, the same number of iterations either way.
#include <memory>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "swept.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::bench;

constexpr std::int64_t interlines = 512, iterations = 24;

Choice choice(double precision, const std::string& scheme) {
  Choice c;
  c.app = "poisson2d";
  c.grid = {2, {8 * interlines + 7, 8 * interlines + 7, 1}, {false, false, false}};
  c.ranks = world_size();
  c.set["precision"] = precision;
  c.set["residual"] = scheme;
  return c;
}

/// One way to end, timed repeatedly. Only one of them has fields at a time, so that the system gives all of them the
/// same memory: different places would bias the times.
class Solution {
 public:
  Solution(std::unique_ptr<Run>& run, const Choice& choice) : run_(run), choice_(choice) {}

  /// Makes new fields and executes every program once.
  void prepare() {
    run_.reset();
    run_ = std::make_unique<Run>(MPI_COMM_WORLD, choice_);
    run_->initialise();
    run_->advance(2);
  }
  void run() {
    MPI_Barrier(MPI_COMM_WORLD);
    const Progress done = run_->advance(iterations);
    MPI_Barrier(MPI_COMM_WORLD);
    if (done.steps == iterations) return;
    std::fprintf(stderr, "bench_precision: %ld iterations instead of %ld\n", static_cast<long>(done.steps),
                 static_cast<long>(iterations));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

 private:
  std::unique_ptr<Run>& run_;
  Choice choice_;
};

Variant variant(const std::string& name, Solution& solution) {
  return {.name = name, .run = [&solution] { solution.run(); }, .prepare = [&solution] { solution.prepare(); }};
}

void measure(int rounds) {
  constexpr double never = 1e-300;
  std::unique_ptr<Run> fields;
  Solution counted(fields, choice(0, "")), deferred(fields, choice(never, "deferred")),
      at_once(fields, choice(never, "allreduce"));
  std::vector<Variant> v{variant("counted iterations", counted), variant("residual deferred", deferred),
                         variant("residual by allreduce", at_once)};
  take_turns(v, rounds);
  if (world_rank() != 0) return;
  for (int scheme : {1, 2})
    emit({.figure = "precision",
          .name = "Jacobi, " + v[scheme].name,
          .a = v[scheme].name,
          .b = v[0].name,
          .samples_a = v[scheme].seconds,
          .samples_b = v[0].seconds,
          .value = "a/b",
          .bar = 1.05,
          .direction = "<=",
          .notes = "4105 x 4105, " + std::to_string(iterations) + " iterations, precision never reached",
          .ranks = world_size()});
}

}  // namespace

int main(int argc, char** argv) {
  haloscope::add_built_in_apps();
  MPI_Init(&argc, &argv);
  const bool fits = two_ranks("bench_precision");
  if (fits) pin_rank(), measure(has_flag(argc, argv, "--quick") ? 5 : 11);
  MPI_Finalize();
  return fits ? 0 : 2;
}
