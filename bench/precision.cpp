// Figure `precision`: what it costs poisson2d's Jacobi method to look for its end by the residuum instead of counting
// iterations. Two ranks, the study's matrix of 4105 x 4105, as many iterations either way.
#include <optional>

#include "haloscope/rank/poisson.hpp"
#include "swept.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::bench;

constexpr std::int64_t interlines = 512, iterations = 24;

Choice choice() {
  Choice c;
  c.app = "poisson2d";
  c.grid = {2, {8 * interlines + 7, 8 * interlines + 7, 1}, {false, false, false}};
  c.ranks = world_size();
  return c;
}

/// A solution that can be timed again and again: its field goes on from where it was.
class Solution {
 public:
  explicit Solution(const PoissonGoal& goal) : simulation_(MPI_COMM_WORLD, choice(), {}, {}), goal_(goal) {
    simulation_.initialise();
    solver_.emplace(MPI_COMM_WORLD, simulation_, choice(), goal_);
  }
  void run() {
    MPI_Barrier(MPI_COMM_WORLD);
    const PoissonResult result = solver_->solve();
    MPI_Barrier(MPI_COMM_WORLD);
    if (result.iterations == iterations) return;
    std::fprintf(stderr, "bench_precision: %ld iterations instead of %ld\n", static_cast<long>(result.iterations),
                 static_cast<long>(iterations));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

 private:
  Simulation simulation_;
  PoissonGoal goal_;
  std::optional<PoissonSolver> solver_;
};

void measure(int rounds) {
  constexpr double never = 1e-300;
  Solution counted({iterations, 0, ""}), deferred({iterations, never, "deferred"}),
      at_once({iterations, never, "allreduce"});
  std::vector<Variant> v{{"counted iterations", [&] { counted.run(); }},
                         {"residuum deferred", [&] { deferred.run(); }},
                         {"residuum by allreduce", [&] { at_once.run(); }}};
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
  MPI_Init(&argc, &argv);
  const bool fits = two_ranks("bench_precision");
  if (fits) pin_rank(), measure(has_flag(argc, argv, "--quick") ? 5 : 11);
  MPI_Finalize();
  return fits ? 0 : 2;
}
