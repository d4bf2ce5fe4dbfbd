// Figure `cg`: an iteration of cg3d against PETSc's KSPCG without preconditioner, with an assembled matrix (AIJ) and
// with a shell matrix of plain loops, and against cg3d's own separate kernels. One program, two ranks, turns taken.
// First it compares the residuals of the first iterations, and the iterations to a tolerance.
#include <cmath>

#include "haloscope/apps/built_in.hpp"
#include "haloscope/extend/reproducible_sum.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "harness.hpp"
#include "petsc_cg.hpp"

namespace haloscope::bench {
namespace {

constexpr int ranks = 2, compared_iterations = 20;
constexpr double tolerance = 1e-8;

Choice choice_of(std::int64_t side, const std::string& form) { return cg_choice(side, form, {1, 1, ranks}); }

std::vector<double> residuals_of(Run& run, int iterations) {
  std::vector<double> found;
  run.initialise();
  for (int i = 0; i < iterations; ++i) {
    run.advance(1);
    found.push_back(std::sqrt(ReproducibleSum::total(run.reduced(run.stages() - 1, 0).data())));
  }
  return found;
}

/// Compares residuals of the first iterations, to 1e-10 of them. @return the largest difference
double compare_residuals(PetscSolver& petsc, Run& own) {
  const std::vector<double> theirs = petsc.residuals(compared_iterations),
                            ours = residuals_of(own, compared_iterations);
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] / theirs[i + 1] - 1));
  if (!(worst <= 1e-10)) give_up("bench_cg_petsc: residuals differ from PETSc's by " + std::to_string(worst));
  return worst;
}

std::string compare_iterations(PetscSolver& petsc, std::int64_t side) {
  Choice c = choice_of(side, "fused");
  c.set["tolerance"] = tolerance;
  Run run(MPI_COMM_WORLD, c);
  run.initialise();
  const auto ours = run.advance(100000).steps;
  const int theirs = petsc.iterations_to(tolerance);
  if (std::abs(ours - theirs) > 1)
    give_up("bench_cg_petsc: " + std::to_string(ours) + " iterations to 1e-8, and PETSc takes " +
            std::to_string(theirs));
  return "; to 1e-8 " + std::to_string(ours) + " iterations, PETSc " + std::to_string(theirs);
}

/// Runs rounds of turns, all ranks beginning together. Leaves seconds per iteration of the slower rank.
void take_turns_together(std::vector<Variant>& variants, int rounds, int iterations) {
  for (Variant& v : variants)
    v.prepare = [prepare = v.prepare] {
      if (prepare) prepare();
      MPI_Barrier(MPI_COMM_WORLD);
    };
  take_turns(variants, rounds);
  for (Variant& v : variants) {
    MPI_Allreduce(MPI_IN_PLACE, v.seconds.data(), rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (double& took : v.seconds) took /= iterations;
  }
}

void measure(std::int64_t side, int rounds, int iterations, bool count_iterations) {
  PetscProblem problem(side, {1, 1, ranks});
  Mat matrices[] = {problem.assembled(), problem.shell()};
  PetscSolver assembled(problem, matrices[0]), shell(problem, matrices[1]);
  Run fused(MPI_COMM_WORLD, choice_of(side, "fused")), plain(MPI_COMM_WORLD, choice_of(side, "plain"));
  const double difference = std::max(compare_residuals(assembled, fused), compare_residuals(shell, plain));
  char notes[200];
  std::snprintf(notes, sizeof notes, "PETSc %s; residuals of %d iterations differ by at most %.0e of them",
                petsc_version().c_str(), compared_iterations, difference);
  const std::string text = notes + (count_iterations ? compare_iterations(assembled, side) : "");
  std::vector<Variant> all{{"cg3d, fused", [&] { fused.advance(iterations); }},
                           {"KSPCG, AIJ", [&] { assembled.iterate(iterations); }},
                           {"KSPCG, shell matrix", [&] { shell.iterate(iterations); }},
                           {"cg3d, separate kernels", [&] { plain.advance(iterations); }}};
  all.front().prepare = [&] { fused.initialise(); };
  all.back().prepare = [&] { plain.initialise(); };
  take_turns_together(all, rounds, iterations);
  for (Mat& matrix : matrices) MatDestroy(&matrix);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  const double bars[] = {0, 3.5, 2.5, 1.5};
  const std::string size = std::to_string(side) + "^3 per rank, over ";
  for (std::size_t i = 1; i < all.size(); ++i)
    emit({.figure = "cg",
          .name = size + all[i].name,
          .a = all[0].name,
          .b = all[i].name,
          .samples_a = all[0].seconds,
          .samples_b = all[i].seconds,
          .value = "b/a",
          .bar = bars[i],
          .notes = text,
          .ranks = ranks});
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  using namespace haloscope::bench;
  haloscope::add_built_in_apps();
  PetscInitializeNoArguments();
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != ranks) give_up("bench_cg_petsc: start it on 2 ranks");
  const bool quick = has_flag(argc, argv, "--quick");
  measure(100, quick ? 3 : 11, 40, true);
  if (!quick) measure(256, 7, 10, false);
  PetscFinalize();
  return 0;
}
