// The end of a pipeline: ranks are in different steps, so one of them decides the last step for all.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "haloscope/reduce/mail.hpp"

namespace haloscope {

/// After each step, the last rank sends rank 0 its decision on the step's numbers. Rank 0, which is ahead of all
/// others, then announces the last step that it has finished itself: all ranks stop after that step (Schroeter 2021,
/// section 4.3). It never runs more than `margin()` steps past the oldest missing answer. That bounds the surplus
/// without stalling the pipeline, since rank 0 cannot be that far ahead of the last rank.
class Termination {
 public:
  /// Collective. @param limit maximum number of steps.
  Termination(MPI_Comm comm, std::int64_t limit, bool yield);

  int margin() const { return 2 * (size_ - 1) + 1; }
  bool first() const { return rank_ == 0; }
  bool last() const { return rank_ + 1 == size_; }

  /// Sends a decision; last rank only, once per step, in order.
  void decide(bool enough);
  /// Rank 0, after `done` steps: returns true if they were the last, and then announces it to all others.
  bool finished(std::int64_t done);
  /// Other ranks: returns true if the announcement has come and `done` steps are all.
  bool announced(std::int64_t done);
  /// Ends the messages, after the last of `done` steps, for each of which the last rank has decided.
  void close(std::int64_t done);

 private:
  void take_answer(double answer);
  bool next_answer(bool wait);

  MPI_Comm comm_;
  bool yield_;
  int rank_, size_;
  std::int64_t limit_, answers_ = 0;
  bool enough_ = false;
  std::unique_ptr<Outbox> answer_;  // last rank
  double incoming_ = 0, announcement_ = -1;
  MPI_Request incoming_request_ = MPI_REQUEST_NULL;
};

}  // namespace haloscope
