// Runs whose ranks are in different steps at one time: Gauss-Seidel in the order of the sequential sweep.
#pragma once

#include <vector>

#include "haloscope/reduce/reducer.hpp"
#include "haloscope/reduce/termination.hpp"
#include "haloscope/run/run.hpp"

namespace haloscope {

/// One series of steps of a run with schedule `pipeline`, from opening to closing (Schroeter 2021, sections 4.3, 5.3).
class Pipeline {
 public:
  Pipeline(Run& run, std::int64_t steps, bool poison);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Collective. Every rank ends with the fields of the same step.
  Progress advance();

 private:
  Progress until_counted();
  Progress until_enough();
  void open();
  void enter();
  void step(bool last = false);
  void close();
  void take_numbers(int reduction);
  static void ignore(void* context, int reduction);
  static void contribute(void* context, int reduction);

  Run& run_;
  BoundStage& stage_;
  std::int64_t steps_;
  bool poison_;
  int rank_ = 0, size_ = 1;
  std::vector<double> mine_;
  std::vector<MPI_Comm> comms_;
  PipelineReducer* reducer_ = nullptr;
};

}  // namespace haloscope
