// The system of cg3d in PETSc: fields of a DMDA, its matrix assembled and as a shell, and Krylov solvers on them.
#pragma once

#include <petscdmda.h>
#include <petscksp.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "haloscope/extend/candidate.hpp"

namespace haloscope::bench {

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// Returns the choice of cg3d with one block of side^3 cells per rank of a process grid.
inline Choice cg_choice(std::int64_t side, const std::string& form, const ProcessGrid& grid) {
  Choice c;
  c.app = "cg3d";
  c.form = form;
  c.grid = {3, {side * grid[0], side * grid[1], side * grid[2]}, {false, false, false}};
  c.ranks = grid[0] * grid[1] * grid[2];
  c.process_grid = std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]);
  return c;
}

inline std::string petsc_version() {
  PetscInt major, minor, patch, release;
  PetscGetVersionNumber(&major, &minor, &patch, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

/// The same problem in PETSc: fields of a DMDA, the right-hand side of cg3d.
class PetscProblem {
 public:
  PetscProblem(std::int64_t side, const ProcessGrid& grid) {
    const auto cells = [&](int d) { return static_cast<PetscInt>(side * grid[static_cast<std::size_t>(d)]); };
    DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, cells(0),
                 cells(1), cells(2), grid[0], grid[1], grid[2], 1, 1, nullptr, nullptr, nullptr, &da_);
    DMSetUp(da_);
    DMCreateGlobalVector(da_, &b_);
    VecDuplicate(b_, &x_);
    DMCreateLocalVector(da_, &with_ghosts_);
    DMDAGetCorners(da_, &lo_[0], &lo_[1], &lo_[2], &n_[0], &n_[1], &n_[2]);
    fill_right_hand_side(cg_choice(side, "fused", grid));
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
  void fill_right_hand_side(const Choice& choice) {
    const Candidate candidate(choice);
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

  /// Distances of neighbouring rows, 0 beyond the grid.
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

/// A Krylov method without preconditioner on one matrix, which stays the caller's.
class PetscSolver {
 public:
  PetscSolver(const PetscProblem& problem, Mat matrix, KSPType type = KSPCG,
              KSPNormType norm = KSP_NORM_UNPRECONDITIONED, bool single_reduction = false)
      : problem_(problem) {
    KSPCreate(PETSC_COMM_WORLD, &ksp_);
    KSPSetOperators(ksp_, matrix, matrix);
    KSPSetType(ksp_, type);
    KSPSetNormType(ksp_, norm);
    if (single_reduction) KSPCGUseSingleReduction(ksp_, PETSC_TRUE);
    PC pc;
    KSPGetPC(ksp_, &pc);
    PCSetType(pc, PCNONE);
    KSPSetUp(ksp_);
  }
  ~PetscSolver() { KSPDestroy(&ksp_); }
  PetscSolver(const PetscSolver&) = delete;

  /// Runs this many iterations from zero, for any residual.
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
  KSP ksp_;
};

}  // namespace haloscope::bench
