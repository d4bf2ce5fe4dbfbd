// Reductions: numbers that a stage's sweeps gather, combined over threads and ranks. Ranks in step use one collective
// call; pipelines, whose ranks are in different steps at any one time, use a scheme per file (Schroeter 2021, section
// 5.3).
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "haloscope/reduce/gatherer.hpp"
#include "haloscope/stage.hpp"

namespace haloscope {

/// The numbers of a sweep's reductions by place, on cache lines of their own: a place for each thread of this rank, or
/// for each piece of work where chance decides which thread does it, so that sums are rounded alike from run to run.
class Partials {
 public:
  explicit Partials(int threads) : places_(threads) {}
  /// Makes room for one more reduction. @return the place of its first number.
  std::size_t add(const Reduction& reduction);
  /// Room for at least `places` places.
  void reserve(int places);
  /// Of each number, in their order.
  std::span<const ReduceOp> ops() const { return ops_; }
  double* of(int place) { return numbers_.data() + static_cast<std::size_t>(place) * stride(); }
  /// The numbers of all places together, in their order; they begin anew. @param first, into  those of one reduction.
  void take(std::size_t first, std::span<double> into);

 private:
  std::size_t stride() const { return (ops_.size() + 15) / 16 * 16; }
  void begin_anew();

  int places_;
  std::vector<ReduceOp> ops_;  // by number
  std::vector<double> numbers_;
};

/// One reduction of ranks that are in step.
class Reducer {
 public:
  /// Local. `comm` is used by this reduction alone; it and `partials`, those of the sweep, must outlive it.
  /// @param yield  give the core away while waiting.
  Reducer(const Reduction& reduction, Partials& partials, MPI_Comm comm, bool yield);
  ~Reducer() { wait(); }
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// How many numbers it has.
  std::size_t size() const { return done_.size(); }
  /// This rank's numbers, combined over threads; they begin anew. @param into  size() of them.
  void take(std::span<double> into) { partials_.take(first_, into); }
  /// Combine over threads and begin to over ranks; with mode `blocking`, end it too. Collective. Drops one under way.
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
  void reduce();
  /// Where waits are watched by a nonblocking call, which MPI may add up in another order.
  void reduce_now(std::span<double> numbers);
  void settle_started();

  ReduceOp op_;
  ReduceMode mode_;
  int collectives_;
  MPI_Comm comm_;
  bool yield_;
  Partials& partials_;
  std::size_t first_;
  std::optional<Gatherer> gatherer_;  // empty: the library reduces
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
