// Runs whose ranks are in different steps at one time: Gauss-Seidel in the order of the sequential sweep.
#pragma once

#include <vector>

#include "haloscope/comm/handles.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "haloscope/reduce/termination.hpp"
#include "haloscope/stepper/counted_series.hpp"

namespace haloscope {

/// The steps of a run with schedule `pipeline`, in series from opening to closing (Schroeter 2021, sections 4.3, 5.3).
class Pipeline {
 public:
  /// Collective. `run` and its stages must outlive it.
  explicit Pipeline(Run& run);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Runs one series. Collective. Every rank ends with the fields of the same step.
  Progress advance(std::int64_t steps);

 private:
  Progress until_enough(std::int64_t steps);
  void open();
  void enter();
  void step();
  void close();
  void take_numbers(int reduction);
  static void contribute(void* context, int reduction);

  Run& run_;
  BoundStage& stage_;
  CountedSeries counted_;
  std::vector<double> mine_;
  std::vector<OwnedComm> comms_;
  PipelineReducer* reducer_ = nullptr;
};

}  // namespace haloscope
