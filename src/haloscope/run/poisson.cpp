#include "haloscope/run/poisson.hpp"

#include <algorithm>
#include <bit>

#include "haloscope/comm/cores.hpp"
#include "haloscope/error.hpp"
#include "haloscope/residuum/residuum.hpp"
#include "haloscope/residuum/termination.hpp"

namespace haloscope {

namespace {

bool in_place(const Choice& choice) { return choice.schedule == "pipeline"; }

}  // namespace

std::string illegal_goal(const Choice& choice, const PoissonGoal& goal) {
  if (goal.precision > 0 && choice.depth > 1)
    return "termination by precision looks at each iteration, and of --depth " + std::to_string(choice.depth) +
           " iterations per exchange only the last ones' fields are kept; use --depth 1 or terminate by --steps";
  try {
    find_residuum_scheme(goal.residuum, in_place(choice));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

PoissonSolver::PoissonSolver(MPI_Comm comm, Simulation& simulation, const Choice& choice, const PoissonGoal& goal)
    : simulation_(simulation), choice_(choice), goal_(goal) {
  if (auto reason = illegal_goal(choice, goal); !reason.empty()) throw UsageError(reason);
  scheme_ = find_residuum_scheme(goal.residuum, in_place(choice)).name;
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_dup(comm, &scheme_comm_);
  MPI_Comm_dup(comm, &stop_comm_);
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  yield_ = more_ranks_than_cores(comm, choice.threads);
}

PoissonSolver::~PoissonSolver() {
  for (MPI_Comm* comm : {&comm_, &scheme_comm_, &stop_comm_}) MPI_Comm_free(comm);
}

double PoissonSolver::over_ranks(double mine) const {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, comm_);
  return mine;
}

PoissonResult PoissonSolver::solve() {
  if (goal_.precision <= 0) return iterate();
  return in_place(choice_) ? pipeline_to_precision() : jacobi_to_precision();
}

/// The residuum is needed of the last iteration alone: Jacobi still has the field before, the pipeline looks while it
/// sweeps.
PoissonResult PoissonSolver::iterate() {
  if (!in_place(choice_)) {
    simulation_.run(goal_.iterations);
    return {goal_.iterations, over_ranks(simulation_.last_change())};
  }
  PoissonSweeps& sweeps = *simulation_.poisson();
  if (size_ == 1) simulation_.run(goal_.iterations - 1);  // alone, it may fuse them
  simulation_.open();
  for (std::int64_t done = size_ == 1 ? goal_.iterations - 1 : 0; done < goal_.iterations; ++done) {
    sweeps.want_residuum(done + 1 == goal_.iterations);
    simulation_.enter();
    simulation_.step();
  }
  simulation_.close();
  const double mine = sweeps.take_residuum();
  sweeps.want_residuum(false);
  return {goal_.iterations, over_ranks(mine)};
}

/// Deferred, the residuum of iteration k is reduced while k + 1 runs. That one is taken back where k was enough: the
/// field of k is still in the other slot.
PoissonResult PoissonSolver::jacobi_to_precision() {
  PoissonSweeps& sweeps = *simulation_.poisson();
  sweeps.want_residuum(true);
  sweeps.take_residuum();
  const bool deferred = scheme_ == "deferred" && size_ > 1;
  MaxReduction reduction(scheme_comm_, yield_);
  PoissonResult result;
  result.reached = false;
  while (!result.reached && result.iterations < goal_.iterations) {
    simulation_.run(1);
    const double mine = sweeps.take_residuum();
    if (deferred && result.iterations > 0) {
      result.residuum = reduction.wait();
      if ((result.reached = result.residuum < goal_.precision)) {
        simulation_.step_back();
        break;
      }
    }
    ++result.iterations;
    if (deferred) {
      reduction.start(mine);
      continue;
    }
    result.residuum = over_ranks(mine);
    result.reached = result.residuum < goal_.precision;
  }
  if (deferred && !result.reached) {
    result.residuum = reduction.wait();
    result.reached = result.residuum < goal_.precision;
  }
  sweeps.want_residuum(false);
  return result;
}

PoissonResult PoissonSolver::pipeline_to_precision() {
  PoissonSweeps& sweeps = *simulation_.poisson();
  sweeps.want_residuum(true);
  sweeps.take_residuum();
  const auto residuum = find_residuum_scheme(scheme_, true).open(scheme_comm_, yield_);
  Termination termination(stop_comm_, goal_.iterations, yield_);
  double last = 0;
  const auto decide = [&] {
    last = residuum->collect();
    termination.decide(last < goal_.precision);
  };
  struct Stop {
    Termination& termination;
    std::int64_t done = 0;
  } stop{termination};
  const auto told_to_stop = [](void* context) {
    const auto& at = *static_cast<Stop*>(context);
    return at.termination.announced(at.done);
  };
  simulation_.open();
  for (;; ++stop.done) {
    if (termination.first() ? termination.finished(stop.done) : !simulation_.enter(told_to_stop, &stop)) break;
    if (termination.first()) simulation_.enter();
    if (termination.last() && residuum->late() && stop.done > 0) decide();
    simulation_.step();
    residuum->contribute(sweeps.take_residuum());
    if (termination.last() && !residuum->late()) decide();
  }
  // Closing sends lines too: nobody may take one for the first line of an iteration that is not to come.
  MPI_Request all_know;
  MPI_Ibarrier(comm_, &all_know);
  settle(all_know, yield_);
  simulation_.close();
  residuum->close();
  if (termination.last() && residuum->late()) decide();
  termination.close(stop.done);
  sweeps.want_residuum(false);
  MPI_Bcast(&last, 1, MPI_DOUBLE, size_ - 1, comm_);
  return {stop.done, last, last < goal_.precision};
}

Excerpt PoissonSolver::excerpt(const AppParameters& parameters) const {
  const PoissonProblem problem = poisson_problem(choice_, parameters);
  const Box owned = simulation_.layout().owned(rank_);
  Excerpt values{};
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 9; ++j) {
      const std::int64_t line = i * (problem.interlines + 1), column = j * (problem.interlines + 1);
      const bool border = i % 8 == 0 || j % 8 == 0;
      const Index cell{column - 1, line - 1, 0};
      if (border && rank_ == 0) values[i][j] = problem.start(line, column);
      if (!border && owned.contains(cell))
        values[i][j] = simulation_.value({cell[0] - owned.lo[0], cell[1] - owned.lo[1], 0});
    }
  MPI_Allreduce(MPI_IN_PLACE, values.data(), 81, MPI_DOUBLE, MPI_SUM, comm_);
  return values;
}

std::uint64_t sequential_checksum(const Choice& choice, const AppParameters& parameters, std::int64_t steps) {
  const PoissonProblem problem = poisson_problem(choice, parameters);
  const std::int64_t n = choice.grid.cells[0], row = n + 2;
  std::vector<double> field(static_cast<std::size_t>(row * row));
  for (std::int64_t y = -1; y <= n; ++y)
    for (std::int64_t x = -1; x <= n; ++x)
      field[static_cast<std::size_t>((y + 1) * row + x + 1)] = initial_value(choice, parameters, {x, y, 0});
  const auto rows = problem.row_factors(), columns = problem.column_factors();
  PoissonArgs args;
  args.out = field.data() + row + 1;
  args.row = row;
  args.region = {{0, 0, 0}, {n, n, 1}};
  if (problem.function == 2) {
    args.row_factor = rows.data() + 1;
    args.column_factor = columns.data() + 1;
  }
  for (std::int64_t k = 0; k < steps; ++k) gauss_seidel_plain(args);
  std::uint64_t sum = 0;
  for (std::int64_t y = 0; y < n; ++y)
    for (std::int64_t x = 0; x < n; ++x)
      sum += checksum_term(choice.grid, {x, y, 0}, std::bit_cast<std::uint64_t>(args.out[y * row + x]));
  return sum;
}

}  // namespace haloscope
