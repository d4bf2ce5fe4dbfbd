// Reductions: numbers that a stage's sweeps gather, combined over threads and ranks. Ranks in step use one collective
// call; pipelines, whose ranks are in different steps at any one time, use a scheme per file (Schroeter 2021, section
// 5.3).
#pragma once

#include <mpi.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "haloscope/stage.hpp"

namespace haloscope {

/// The result of reducing no numbers.
double identity_of(ReduceOp op);
double combined(ReduceOp op, double a, double b);
MPI_Op mpi_op(ReduceOp op);

/// A reduction's numbers by place, on cache lines of their own: a place for each thread of this rank, or for each piece
/// of work where chance decides which thread does it, so that sums are rounded alike from run to run.
class Partials {
 public:
  Partials(const Reduction& reduction, int threads);
  /// Room for at least `places` places.
  void reserve(int places);
  double* of(int place) { return numbers_.data() + static_cast<std::size_t>(place) * stride_; }
  /// The numbers of all places together, in their order; they begin anew. @param into  as many as the reduction has.
  void take(std::span<double> into);

 private:
  ReduceOp op_;
  int places_ = 0;
  std::size_t stride_;
  std::vector<double> numbers_;
};

/// One reduction of ranks that are in step.
class Reducer {
 public:
  /// Local. `comm` is used by this reduction alone and must outlive it. @param yield  give the core away while waiting.
  Reducer(const Reduction& reduction, MPI_Comm comm, int threads, bool yield);
  ~Reducer() { wait(); }
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// How many numbers it has.
  std::size_t size() const { return done_.size(); }
  Partials& partials() { return partials_; }
  /// Combine over threads and begin to over ranks; with mode `blocking`, end it too. Collective.
  void start();
  /// Waits for the numbers that were started last; returns at once when there are none.
  void wait();
  /// The same, but the latest numbers stay those of before.
  void drop();
  /// The latest awaited numbers; empty before there are any.
  std::span<const double> numbers() const { return {done_.data(), has_numbers_ ? done_.size() : 0}; }
  void forget() { has_numbers_ = false; }
  /// Sets the numbers, found by other means.
  void set(std::span<const double> numbers);

 private:
  ReduceOp op_;
  ReduceMode mode_;
  int collectives_;
  MPI_Comm comm_;
  bool yield_;
  Partials partials_;
  std::vector<double> started_, done_;
  bool has_numbers_ = false;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

/// How a pipeline's last rank learns the numbers of each step. Opened collectively.
class PipelineReducer {
 public:
  virtual ~PipelineReducer() = default;
  /// This rank has finished its next step with numbers `mine`.
  virtual void contribute(std::span<const double> mine) = 0;
  /// Last rank only, once per step, in order: the numbers over all ranks of the next step not yet collected. Allowed
  /// after its own contribute(); where late(), the line of the following step must have come too.
  virtual void collect(std::span<double> into) = 0;
  /// Contributions are known to have arrived only when the rank before has sent a line of the step after.
  virtual bool late() const { return false; }
  /// After the same number of steps on every rank: nothing is in flight afterwards, and the last step can be collected.
  /// Collective.
  virtual void close() = 0;
};

/// What a pipeline's reducers are opened on. Only one of them uses `comm`.
struct PipelineContext {
  MPI_Comm comm;
  ReduceOp op;
  int numbers;
  bool yield;
};

/// @param scheme  one of reduction_schemes(), "" for the first. @throws UsageError naming the valid ones.
std::unique_ptr<PipelineReducer> open_pipeline_reducer(const std::string& scheme, const PipelineContext& context);

}  // namespace haloscope
