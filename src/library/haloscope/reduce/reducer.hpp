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

/// The numbers of a sweep's reductions by place, on separate cache lines: a place for each thread of this rank, or
/// for each piece of work where pieces are assigned to threads dynamically, so that sums are rounded equally in every
/// run.
class Partials {
 public:
  explicit Partials(int threads) : places_(threads) {}
  /// Makes room for one more reduction. @return the place of its first number.
  std::size_t add(const Reduction& reduction);
  /// Makes room for at least `places` places.
  void reserve(int places);
  /// Returns the operation of each number, in order.
  std::span<const ReduceOp> ops() const { return ops_; }
  double* of(int place) { return numbers_.data() + static_cast<std::size_t>(place) * stride(); }
  /// Returns the combined numbers of all places, in order, and resets them. @param first, into numbers of one
  /// reduction.
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
  /// Local. Only this reduction may use `comm`; it and `partials`, the sweep's, must outlive the reduction.
  /// @param yield  yield the core while waiting.
  Reducer(const Reduction& reduction, Partials& partials, MPI_Comm comm, bool yield);
  ~Reducer() { wait(); }
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Returns the number of its numbers.
  std::size_t size() const { return done_.size(); }
  /// Returns this rank's numbers, combined over threads, and resets them. @param into size() numbers.
  void take(std::span<double> into) { partials_.take(first_, into); }
  /// Combines numbers over threads and begins to combine them over ranks; with mode `blocking`, also ends it.
  /// Collective. Drops a reduction in flight.
  void start();
  /// Waits for the numbers that were started last; returns immediately without such numbers.
  void wait();
  /// The same, but keeps the previous numbers.
  void drop();
  /// Returns the latest numbers that were waited for; empty before the first.
  std::span<const double> numbers() const { return {done_.data(), has_numbers_ ? done_.size() : 0}; }
  void forget() { has_numbers_ = false; }
  /// Sets the numbers, found by other means.
  void set(std::span<const double> numbers);

 private:
  /// Reduces the numbers now: where waits are watched by nonblocking calls, in which MPI may add in another order.
  void reduce();
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

/// A scheme by which a pipeline's last rank gets the numbers of each step. Opened collectively.
class PipelineReducer {
 public:
  virtual ~PipelineReducer() = default;
  /// Contributes the numbers `mine` of this rank's next finished step.
  virtual void contribute(std::span<const double> mine) = 0;
  /// Returns the numbers over all ranks of the next step not yet collected; last rank only, once per step, in order.
  /// Allowed after this rank's contribute(); where late(), the line of the following step must have come too.
  virtual void collect(std::span<double> into) = 0;
  /// Returns true if contributions are certain to have arrived only when the rank before has sent a line of the
  /// following step.
  virtual bool late() const { return false; }
  /// Ends all transfers, after the same number of steps on every rank: no data are in flight afterwards, and the last
  /// step can be collected.
  /// Collective.
  virtual void close() = 0;
};

/// The input of open_pipeline_reducer(). Only one reducer uses `comm`.
struct PipelineContext {
  MPI_Comm comm;
  ReduceOp op;
  int numbers;
  bool yield;
};

/// Opens a reducer. @param scheme one of reduction_schemes(), "" for the first. @throws UsageError naming the valid
/// ones.
std::unique_ptr<PipelineReducer> open_pipeline_reducer(const std::string& scheme, const PipelineContext& context);

}  // namespace haloscope
