// Shared by the tests of poisson2d: choices, the sequential program by the plain loops, one solution of all ranks.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/run/poisson.hpp"
#include "link_rig.hpp"

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

inline AppParameters start_from(const std::string& initial, int function = 1) {
  AppParameters p;
  p.initial = initial;
  p.function = function;
  return p;
}

/// The whole matrix of one rank, by the plain loops alone.
struct Sequential {
  PoissonProblem problem;
  std::int64_t row;
  std::vector<double> now, before, rows, columns;
  bool in_place;

  Sequential(const Choice& c, const AppParameters& p)
      : problem(poisson_problem(c, p)),
        row(problem.lines()),
        rows(problem.row_factors()),
        columns(problem.column_factors()),
        in_place(c.form == "gauss-seidel") {
    for (std::int64_t y = 0; y < row; ++y)
      for (std::int64_t x = 0; x < row; ++x) now.push_back(initial_value(c, p, {x - 1, y - 1, 0}));
    before = now;
  }
  double iterate() {
    if (!in_place) std::swap(now, before);
    PoissonArgs a;
    a.in = before.data();
    a.out = now.data();
    a.row = row;
    a.region = {{1, 1, 0}, {row - 1, row - 1, 1}};
    a.residuum = true;
    if (!rows.empty()) a.row_factor = rows.data();
    if (!columns.empty()) a.column_factor = columns.data();
    return in_place ? gauss_seidel_plain(a) : jacobi_plain(a);
  }
  double residuum_after(std::int64_t iterations) {
    double r = 0;
    for (std::int64_t k = 0; k < iterations; ++k) r = iterate();
    return r;
  }
  double at(std::int64_t line, std::int64_t column) const { return now[static_cast<std::size_t>(line * row + column)]; }
};

inline void expect_same_field(const Simulation& simulation, const Sequential& expected, const std::string& what) {
  const Box owned = simulation.layout().owned(world_rank());
  std::int64_t wrong = 0;
  for (std::int64_t y = owned.lo[1]; y < owned.hi[1]; ++y)
    for (std::int64_t x = owned.lo[0]; x < owned.hi[0]; ++x)
      wrong += simulation.value({x - owned.lo[0], y - owned.lo[1], 0}) != expected.at(y + 1, x + 1);
  EXPECT_EQ(wrong, 0) << what;
}

struct Solved {
  PoissonResult result;
  std::unique_ptr<Simulation> simulation;
};

inline Solved solve(const Choice& c, const AppParameters& p, const PoissonGoal& goal, SimulationOptions options = {}) {
  Solved s{{}, std::make_unique<Simulation>(MPI_COMM_WORLD, c, p, options)};
  PoissonSolver solver(MPI_COMM_WORLD, *s.simulation, c, goal);
  s.simulation->initialise();
  s.result = solver.solve();
  return s;
}

/// Iteration mode on random data: same bytes and residuum as the sequential loop.
inline void expect_sequential(const Choice& c, std::int64_t iterations, int function, SimulationOptions options = {}) {
  const AppParameters p = start_from("random", function);
  Sequential expected(c, p);
  const double residuum = expected.residuum_after(iterations);
  const Solved s = solve(c, p, {iterations, 0, ""}, options);
  const std::string what = c.form + " " + c.strategy + " " + c.schedule + " function " + std::to_string(function);
  EXPECT_EQ(s.result.residuum, residuum) << what;
  expect_same_field(*s.simulation, expected, what);
  EXPECT_TRUE(s.simulation->canaries_alive());
}

}  // namespace haloscope::test
