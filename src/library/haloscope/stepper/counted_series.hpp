// Series of a fixed number of steps of sweeps in place, from opening to closing.
#pragma once

#include <vector>

#include "haloscope/stepper/stage_loop.hpp"

namespace haloscope {

/// A fixed number of steps of schedule `pipeline`: a series.
class CountedSeries {
 public:
  /// `stage` must outlive it.
  explicit CountedSeries(BoundStage& stage);
  /// Runs one series; advances the time. Collective. Every rank ends with the fields of the same step, and with the
  /// numbers of its reductions.
  void advance(FieldTime& at, std::int64_t steps);

 private:
  static void ignore(void* context, int reduction);

  BoundStage& stage_;
  std::vector<double> mine_;  // numbers of steps before the last one
};

}  // namespace haloscope
