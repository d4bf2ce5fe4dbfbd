// Figure `cg`: an iteration of cg3d against PETSc's KSPCG without preconditioner, with an assembled matrix (AIJ) and with
// a shell matrix of plain loops, and against cg3d's own separate kernels. One program, two ranks, turns taken. First it
// compares the residuals of the first iterations, and how many iterations a tolerance takes.
#include <petscdmda.h>
#include <petscksp.h>

#include <cmath>

#include "haloscope/reproducible_sum.hpp"
#include "haloscope/run/run.hpp"
#include "harness.hpp"

namespace haloscope::bench {
namespace {

constexpr int ranks = 2, compared_iterations = 20;
constexpr double tolerance = 1e-8;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench_cg_petsc: %s\n", why.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

Choice cg_choice(std::int64_t side, const std::string& form) {
  Choice c;
  c.app = "cg3d";
  c.form = form;
  c.grid = {3, {side, side, side * ranks}, {false, false, false}};
  c.ranks = ranks;
  c.process_grid = "1x1x2";
  return c;
}

/// The same problem in PETSc: fields of a DMDA, the right-hand side of cg3d.
class PetscProblem {
 public:
  explicit PetscProblem(std::int64_t side) {
    DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR,
                 static_cast<PetscInt>(side), static_cast<PetscInt>(side), static_cast<PetscInt>(side * ranks), 1, 1,
                 ranks, 1, 1, nullptr, nullptr, nullptr, &da_);
    DMSetUp(da_);
    DMCreateGlobalVector(da_, &b_);
    VecDuplicate(b_, &x_);
    DMCreateLocalVector(da_, &with_ghosts_);
    DMDAGetCorners(da_, &lo_[0], &lo_[1], &lo_[2], &n_[0], &n_[1], &n_[2]);
    fill_right_hand_side(side);
  }
  ~PetscProblem() {
    VecDestroy(&b_);
    VecDestroy(&x_);
    VecDestroy(&with_ghosts_);
    DMDestroy(&da_);
  }
  PetscProblem(const PetscProblem&) = delete;

  Mat assembled() const {
    Mat matrix;
    DMCreateMatrix(da_, &matrix);
    PetscInt all[3];
    DMDAGetInfo(da_, nullptr, &all[0], &all[1], &all[2], nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                nullptr, nullptr);
    MatStencil row{};
    for (row.k = lo_[2]; row.k < lo_[2] + n_[2]; ++row.k)
      for (row.j = lo_[1]; row.j < lo_[1] + n_[1]; ++row.j)
        for (row.i = lo_[0]; row.i < lo_[0] + n_[0]; ++row.i) {
          MatStencil columns[7];
          double values[7];
          PetscInt count = 0;
          const auto put = [&](PetscInt i, PetscInt j, PetscInt k, double value) {
            if (i < 0 || j < 0 || k < 0 || i >= all[0] || j >= all[1] || k >= all[2]) return;
            columns[count] = {};
            columns[count].i = i, columns[count].j = j, columns[count].k = k;
            values[count++] = value;
          };
          put(row.i, row.j, row.k, 6);
          put(row.i - 1, row.j, row.k, -1);
          put(row.i + 1, row.j, row.k, -1);
          put(row.i, row.j - 1, row.k, -1);
          put(row.i, row.j + 1, row.k, -1);
          put(row.i, row.j, row.k - 1, -1);
          put(row.i, row.j, row.k + 1, -1);
          MatSetValuesStencil(matrix, 1, &row, count, columns, values, INSERT_VALUES);
        }
    MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY);
    MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY);
    return matrix;
  }
  Mat shell() {
    Mat matrix;
    PetscInt local = 0;
    VecGetLocalSize(b_, &local);
    MatCreateShell(PETSC_COMM_WORLD, local, local, PETSC_DETERMINE, PETSC_DETERMINE, this, &matrix);
    MatShellSetOperation(matrix, MATOP_MULT, reinterpret_cast<void (*)()>(&PetscProblem::multiply_shell));
    return matrix;
  }
  Vec b() const { return b_; }
  Vec x() const { return x_; }

 private:
  void fill_right_hand_side(std::int64_t side) {
    const Candidate candidate(cg_choice(side, "fused"));
    const auto start =
        initial_values(candidate.app, candidate.problem, 1, Box{{0, 0, 0}, candidate.problem.grid.cells});
    double* values = nullptr;
    VecGetArray(b_, &values);
    std::size_t at = 0;
    for (PetscInt k = lo_[2]; k < lo_[2] + n_[2]; ++k)
      for (PetscInt j = lo_[1]; j < lo_[1] + n_[1]; ++j)
        for (PetscInt i = lo_[0]; i < lo_[0] + n_[0]; ++i) values[at++] = start({i, j, k});
    VecRestoreArray(b_, &values);
  }

  static PetscErrorCode multiply_shell(Mat matrix, Vec in, Vec out) {
    PetscProblem* self = nullptr;
    MatShellGetContext(matrix, &self);
    return self->multiply(in, out);
  }
  PetscErrorCode multiply(Vec in, Vec out) {
    DMGlobalToLocalBegin(da_, in, INSERT_VALUES, with_ghosts_);
    DMGlobalToLocalEnd(da_, in, INSERT_VALUES, with_ghosts_);
    PetscInt g[3], m[3];
    DMDAGetGhostCorners(da_, &g[0], &g[1], &g[2], &m[0], &m[1], &m[2]);
    const double* v = nullptr;
    double* result = nullptr;
    VecGetArrayRead(with_ghosts_, &v);
    VecGetArray(out, &result);
    for (PetscInt k = 0; k < n_[2]; ++k)
      for (PetscInt j = 0; j < n_[1]; ++j) {
        const double* row = v + (lo_[0] - g[0]) + m[0] * ((lo_[1] - g[1] + j) + m[1] * (lo_[2] - g[2] + k));
        multiply_row(row, result + n_[0] * (j + n_[1] * k), Neighbours(*this, j, k, g, m));
      }
    VecRestoreArray(out, &result);
    VecRestoreArrayRead(with_ghosts_, &v);
    return 0;
  }

  /// How far neighbouring rows are, 0 beyond the grid.
  struct Neighbours {
    PetscInt south, north, below, above;
    Neighbours(const PetscProblem& p, PetscInt j, PetscInt k, const PetscInt* g, const PetscInt* m)
        : south(j + p.lo_[1] > g[1] ? m[0] : 0),
          north(j + p.lo_[1] + 1 < g[1] + m[1] ? m[0] : 0),
          below(k + p.lo_[2] > g[2] ? m[0] * m[1] : 0),
          above(k + p.lo_[2] + 1 < g[2] + m[2] ? m[0] * m[1] : 0) {}
    bool all() const { return south && north && below && above; }
  };
  void multiply_row(const double* v, double* out, const Neighbours& to) const {
    const PetscInt n = n_[0];
    const auto at = [&](PetscInt i) {  // a cell at the grid's edge
      double sum = 6 * v[i];
      if (i > 0) sum -= v[i - 1];
      if (i + 1 < n) sum -= v[i + 1];
      if (to.south) sum -= v[i - to.south];
      if (to.north) sum -= v[i + to.north];
      if (to.below) sum -= v[i - to.below];
      if (to.above) sum -= v[i + to.above];
      return sum;
    };
    out[0] = at(0);
    out[n - 1] = at(n - 1);
    if (!to.all()) {
      for (PetscInt i = 1; i < n - 1; ++i) out[i] = at(i);
      return;
    }
    const PetscInt y = to.south, z = to.below;
    for (PetscInt i = 1; i < n - 1; ++i)
      out[i] = 6 * v[i] - (((((v[i - 1] + v[i + 1]) + v[i - y]) + v[i + y]) + v[i - z]) + v[i + z]);
  }

  DM da_;
  Vec b_, x_, with_ghosts_;
  PetscInt lo_[3], n_[3];
};

/// KSPCG on one matrix.
class PetscSolver {
 public:
  PetscSolver(const PetscProblem& problem, Mat matrix) : problem_(problem), matrix_(matrix) {
    KSPCreate(PETSC_COMM_WORLD, &ksp_);
    KSPSetOperators(ksp_, matrix_, matrix_);
    KSPSetType(ksp_, KSPCG);
    KSPSetNormType(ksp_, KSP_NORM_UNPRECONDITIONED);
    PC pc;
    KSPGetPC(ksp_, &pc);
    PCSetType(pc, PCNONE);
    KSPSetUp(ksp_);
  }
  ~PetscSolver() {
    KSPDestroy(&ksp_);
    MatDestroy(&matrix_);
  }
  PetscSolver(const PetscSolver&) = delete;

  /// So many iterations from zero, whatever the residual.
  void iterate(int iterations) {
    KSPSetConvergenceTest(ksp_, KSPConvergedSkip, nullptr, nullptr);
    KSPSetTolerances(ksp_, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, iterations);
    KSPSolve(ksp_, problem_.b(), problem_.x());
  }
  std::vector<double> residuals(int iterations) {
    std::vector<double> history(static_cast<std::size_t>(iterations) + 1);
    KSPSetResidualHistory(ksp_, history.data(), static_cast<PetscInt>(history.size()), PETSC_TRUE);
    iterate(iterations);
    KSPSetResidualHistory(ksp_, nullptr, 1, PETSC_TRUE);
    return history;
  }
  int iterations_to(double relative) {
    void* context = nullptr;
    KSPConvergedDefaultCreate(&context);
    KSPSetConvergenceTest(ksp_, KSPConvergedDefault, context, KSPConvergedDefaultDestroy);
    KSPSetTolerances(ksp_, relative, 0, PETSC_DEFAULT, 100000);
    KSPSolve(ksp_, problem_.b(), problem_.x());
    PetscInt count = 0;
    KSPGetIterationNumber(ksp_, &count);
    return static_cast<int>(count);
  }

 private:
  const PetscProblem& problem_;
  Mat matrix_;
  KSP ksp_;
};

std::vector<double> residuals_of(Run& run, int iterations) {
  std::vector<double> found;
  run.initialise();
  for (int i = 0; i < iterations; ++i) {
    run.advance(1);
    found.push_back(std::sqrt(ReproducibleSum::total(run.reduced(run.stages() - 1, 0).data())));
  }
  return found;
}

/// Residuals of the first iterations, to 1e-10 of them. @return the largest difference
double compare_residuals(PetscSolver& petsc, Run& own) {
  const std::vector<double> theirs = petsc.residuals(compared_iterations),
                            ours = residuals_of(own, compared_iterations);
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] / theirs[i + 1] - 1));
  if (!(worst <= 1e-10)) give_up("residuals differ from PETSc's by " + std::to_string(worst));
  return worst;
}

std::string compare_iterations(PetscSolver& petsc, std::int64_t side) {
  Choice c = cg_choice(side, "fused");
  c.set["tolerance"] = tolerance;
  Run run(MPI_COMM_WORLD, c);
  run.initialise();
  const auto ours = run.advance(100000).steps;
  const int theirs = petsc.iterations_to(tolerance);
  if (std::abs(ours - theirs) > 1)
    give_up(std::to_string(ours) + " iterations to 1e-8, and PETSc takes " + std::to_string(theirs));
  return "; to 1e-8 " + std::to_string(ours) + " iterations, PETSc " + std::to_string(theirs);
}

/// Rounds of turns, all ranks beginning together. Leaves seconds per iteration of the slower rank.
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
  PetscProblem problem(side);
  PetscSolver assembled(problem, problem.assembled()), shell(problem, problem.shell());
  Run fused(MPI_COMM_WORLD, cg_choice(side, "fused")), plain(MPI_COMM_WORLD, cg_choice(side, "plain"));
  const double difference = std::max(compare_residuals(assembled, fused), compare_residuals(shell, plain));
  char notes[200];
  PetscInt major, minor, patch, release;
  PetscGetVersionNumber(&major, &minor, &patch, &release);
  std::snprintf(notes, sizeof notes, "PETSc %d.%d.%d; residuals of %d iterations differ by at most %.0e of them",
                static_cast<int>(major), static_cast<int>(minor), static_cast<int>(patch), compared_iterations,
                difference);
  const std::string said = notes + (count_iterations ? compare_iterations(assembled, side) : "");
  std::vector<Variant> all{{"cg3d, fused", [&] { fused.advance(iterations); }},
                           {"KSPCG, AIJ", [&] { assembled.iterate(iterations); }},
                           {"KSPCG, shell matrix", [&] { shell.iterate(iterations); }},
                           {"cg3d, separate kernels", [&] { plain.advance(iterations); }}};
  all.front().prepare = [&] { fused.initialise(); };
  all.back().prepare = [&] { plain.initialise(); };
  take_turns_together(all, rounds, iterations);
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
          .notes = said,
          .ranks = ranks});
}

}  // namespace
}  // namespace haloscope::bench

int main(int argc, char** argv) {
  using namespace haloscope::bench;
  PetscInitializeNoArguments();
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != ranks) give_up("start it on 2 ranks");
  const bool quick = has_flag(argc, argv, "--quick");
  measure(100, quick ? 3 : 11, 40, true);
  if (!quick) measure(256, 7, 10, false);
  PetscFinalize();
  return 0;
}
