// Shared by the tests of poisson2d: choices, the sequential program by the plain loops, one solution of all ranks.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/rank/measure/run.hpp"
#include "link_rig.hpp"
#include "schroeter2021/app/problem.hpp"

namespace haloscope::test {

inline Choice choice_of(const std::string& method, std::int64_t interlines) {
  Choice c;
  c.app = "poisson2d";
  c.form = method;
  c.grid = {2, {8 * interlines + 7, 8 * interlines + 7, 1}, {false, false, false}};
  c.ranks = world_size();
  c.schedule = method == "gauss-seidel" ? "pipeline" : "bulk";
  return c;
}

inline Choice start_from(Choice c, const char* initial, int function = 1) {
  c.set["initial"] = initial;
  c.set["function"] = std::int64_t{function};
  return c;
}

/// Iterates until the residual is below `precision`; a scheme's name selects its computation.
inline Choice until(Choice c, double precision, const std::string& scheme) {
  c.set["precision"] = precision;
  c.set["residual"] = scheme;
  return c;
}

/// The whole matrix of one rank, by the plain loops alone.
struct Sequential {
  PoissonProblem problem;
  std::int64_t row;
  std::vector<double> now, before, rows, columns;
  bool in_place;

  explicit Sequential(const Choice& c) : in_place(c.form == "gauss-seidel") {
    const haloscope::Problem described = problem_of(c);
    problem = {(c.grid.cells[0] - 7) / 8, static_cast<int>(described.parameters.integer("function"))};
    row = problem.lines();
    rows = problem.row_factors();
    columns = problem.column_factors();
    const auto value = initial_values(find_app(c.app), described, 0, Box{{0, 0, 0}, c.grid.cells});
    for (std::int64_t y = 0; y < row; ++y)
      for (std::int64_t x = 0; x < row; ++x) now.push_back(value({x - 1, y - 1, 0}));
    before = now;
  }
  double iterate() {
    if (!in_place) std::swap(now, before);
    double residual = 0;
    PoissonArgs a;
    a.in = before.data();
    a.out = now.data();
    a.row = row;
    a.region = {{1, 1, 0}, {row - 1, row - 1, 1}};
    a.change = &residual;
    if (!rows.empty()) a.row_factor = rows.data();
    if (!columns.empty()) a.column_factor = columns.data();
    return in_place ? gauss_seidel_plain(a) : jacobi_plain(a);
  }
  double residual_after(std::int64_t iterations) {
    double r = 0;
    for (std::int64_t k = 0; k < iterations; ++k) r = iterate();
    return r;
  }
  double at(std::int64_t line, std::int64_t column) const { return now[static_cast<std::size_t>(line * row + column)]; }
};

inline void expect_same_field(const Run& run, const Sequential& expected, const std::string& context) {
  const Box owned = run.layout().owned(world_rank());
  std::int64_t wrong = 0;
  for (std::int64_t y = owned.lo[1]; y < owned.hi[1]; ++y)
    for (std::int64_t x = owned.lo[0]; x < owned.hi[0]; ++x)
      wrong += run.value({x - owned.lo[0], y - owned.lo[1], 0}) != expected.at(y + 1, x + 1);
  EXPECT_EQ(wrong, 0) << context;
}

struct Solved {
  Progress progress;
  double residual = 0;  ///< of the last iteration, over all ranks
  std::unique_ptr<Run> run;
};

/// Runs at most this number of iterations; a precision may end them earlier.
inline Solved solve(const Choice& c, std::int64_t iterations, const RunnerOptions& options = {}) {
  Solved s;
  s.run = std::make_unique<Run>(MPI_COMM_WORLD, c, options);
  s.run->initialise();
  s.progress = s.run->advance(iterations);
  s.residual = s.run->reduced(0, 0)[0];
  return s;
}

/// Iteration mode on random data: same bytes and residual as the sequential loop.
inline void expect_sequential(const Choice& choice, std::int64_t iterations, int function,
                              const RunnerOptions& options = {}) {
  const Choice c = start_from(choice, "random", function);
  Sequential expected(c);
  const double residual = expected.residual_after(iterations);
  const Solved s = solve(c, iterations, options);
  const std::string context =
      c.form + " " + to_string(c.strategy) + " " + c.schedule->name + " function " + std::to_string(function);
  EXPECT_EQ(s.residual, residual) << context;
  expect_same_field(*s.run, expected, context);
  EXPECT_TRUE(s.run->canaries_alive());
}

}  // namespace haloscope::test
