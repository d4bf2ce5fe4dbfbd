// Figure `precision`: what it costs poisson2d's Jacobi method to look for its end by the residuum instead of counting
// iterations. Two ranks, the study's matrix of 4105 x 4105, as many iterations either way.
#include "haloscope/run/poisson.hpp"
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

/// One way to end, as it can be timed again and again: the field goes on from where the others have left it. All use
/// the same memory, whose place would else tell them apart.
class Solution {
 public:
  Solution(Simulation& simulation, const PoissonGoal& goal) : solver_(MPI_COMM_WORLD, simulation, choice(), goal) {}
  void run() {
    MPI_Barrier(MPI_COMM_WORLD);
    const PoissonResult result = solver_.solve();
    MPI_Barrier(MPI_COMM_WORLD);
    if (result.iterations == iterations) return;
    std::fprintf(stderr, "bench_precision: %ld iterations instead of %ld\n", static_cast<long>(result.iterations),
                 static_cast<long>(iterations));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

 private:
  PoissonSolver solver_;
};

void measure(int rounds) {
  constexpr double never = 1e-300;
  Simulation simulation(MPI_COMM_WORLD, choice(), {}, {});
  simulation.initialise();
  Solution counted(simulation, {iterations, 0, ""}), deferred(simulation, {iterations, never, "deferred"}),
      at_once(simulation, {iterations, never, "allreduce"});
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
