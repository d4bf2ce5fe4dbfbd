// Solving poisson2d: iterations until their number or the residuum is reached, by Jacobi or by the Gauss-Seidel
// pipeline.
#pragma once

#include <mpi.h>

#include <array>
#include <string>
#include <vector>

#include "haloscope/run/run.hpp"

namespace haloscope {

/// How a solution ends and how its residuum is found.
struct PoissonGoal {
  std::int64_t iterations = 100;  ///< to do; with a precision: at most
  double precision = 0;           ///< > 0: stop when the residuum is below it
  std::string residuum;           ///< scheme, see residuum_schemes(); "" = the method's default
};

struct PoissonResult {
  std::int64_t iterations = 0;
  double residuum = 0;  ///< of the last iteration, over all ranks
  bool reached = true;  ///< the precision, where there is one
};

/// Why a choice cannot be solved to this goal; empty when it can.
std::string illegal_goal(const Choice& choice, const PoissonGoal& goal);

/// The matrix's values at 9 x 9 lines and columns, border included: every (I + 1)th. Collective.
using Excerpt = std::array<std::array<double, 9>, 9>;

class PoissonSolver {
 public:
  /// Collective over `comm`. `simulation` must outlive the solver. @throws UsageError for an illegal goal.
  PoissonSolver(MPI_Comm comm, Simulation& simulation, const Choice& choice, const PoissonGoal& goal);
  ~PoissonSolver();
  PoissonSolver(const PoissonSolver&) = delete;
  PoissonSolver& operator=(const PoissonSolver&) = delete;

  /// From the current field on. Every rank ends with the field of the same iteration. Collective.
  PoissonResult solve();
  Excerpt excerpt(const AppParameters& parameters) const;
  const std::string& scheme() const { return scheme_; }

 private:
  PoissonResult iterate();
  PoissonResult jacobi_to_precision();
  PoissonResult pipeline_to_precision();
  double over_ranks(double mine) const;

  MPI_Comm comm_, scheme_comm_, stop_comm_;
  Simulation& simulation_;
  Choice choice_;
  PoissonGoal goal_;
  std::string scheme_;
  bool yield_;
  int rank_ = 0, size_ = 1;
};

/// Checksum (as Simulation::checksum) after `steps` sequential Gauss-Seidel sweeps by the plain loop: what a pipeline
/// must give bit for bit. Needs the whole field on one rank.
std::uint64_t sequential_checksum(const Choice& choice, const AppParameters& parameters, std::int64_t steps);

}  // namespace haloscope
