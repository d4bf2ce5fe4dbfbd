// Residua of iterations over all ranks, for methods whose ranks are in step (a reduction) and for pipelines, whose
// ranks are in different iterations at one time (a scheme per file; Schroeter 2021, section 5.3).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace haloscope {

/// How a pipeline's last rank learns the largest residuum of each iteration. Opened collectively.
class PipelineResiduum {
 public:
  virtual ~PipelineResiduum() = default;
  /// This rank has finished its next iteration with residuum `mine`.
  virtual void contribute(double mine) = 0;
  /// Last rank only, once per iteration, in order: the largest over all ranks of the next iteration not yet collected.
  /// Allowed after its own contribute(), where late() also the line of the iteration after it must have come.
  virtual double collect() = 0;
  /// Contributions are known to have arrived only when the rank before has sent a line of the iteration after.
  virtual bool late() const { return false; }
  /// After the same number of iterations on every rank: nothing is in flight afterwards, and the last iteration can be
  /// collected. Collective.
  virtual void close() = 0;
};

struct ResiduumScheme {
  std::string name;
  std::string summary;  ///< one sentence for help texts
  /// Null: for ranks in step, see MaxReduction.
  /// @param comm  used by this scheme alone. @param yield  give the core away while waiting.
  std::unique_ptr<PipelineResiduum> (*open)(MPI_Comm comm, bool yield);
};

/// All schemes: `deferred` and `allreduce` for ranks in step, then those of pipelines; of each kind the default first.
const std::vector<ResiduumScheme>& residuum_schemes();
/// @param pipeline  of which kind it must be. @throws UsageError naming the valid ones.
const ResiduumScheme& find_residuum_scheme(const std::string& name, bool pipeline);

std::unique_ptr<PipelineResiduum> chain_residuum(MPI_Comm comm, bool yield);
std::unique_ptr<PipelineResiduum> chain_pscw_residuum(MPI_Comm comm, bool yield);
std::unique_ptr<PipelineResiduum> all_to_last_residuum(MPI_Comm comm, bool yield);
std::unique_ptr<PipelineResiduum> accumulate_residuum(MPI_Comm comm, bool yield);

/// The largest of all ranks' numbers, found while they go on computing.
class MaxReduction {
 public:
  explicit MaxReduction(MPI_Comm comm, bool yield) : comm_(comm), yield_(yield) {}
  void start(double mine);
  double wait();

 private:
  MPI_Comm comm_;
  bool yield_;
  double value_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace haloscope
