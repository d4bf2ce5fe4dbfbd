// Time steps on bound stages: rounds of `depth` steps, loops of stages, ends before the last step.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "haloscope/extend/candidate.hpp"
#include "haloscope/stage.hpp"
#include "haloscope/stepper/bound_stage.hpp"

namespace haloscope {

/// The progress of a run.
struct Progress {
  std::int64_t steps = 0;  ///< done
  bool finished = false;   ///< App::finished ended it
};

/// The slot that holds the fields, and their time step.
struct FieldTime {
  int slot = 0;
  std::int64_t time = 0;
};

class StageLoop {
 public:
  /// Each may be empty.
  struct Hooks {
    std::function<void(BoundStage&, std::int64_t iteration)> before;  ///< a stage, in an iteration of its loop
    std::function<void(BoundStage&)> after;
    std::function<void(const StageGroup&)> open_group, close_group;
    /// Returns true if a loop has finished, by the numbers of its reductions; with stage -1, if the run has, by the
    /// numbers of all stages.
    std::function<bool(int stage, std::span<const double> reduced)> finished;
  };

  /// Collective over context.comm. Everything in the context must outlive it.
  /// @param decides_alone  true: `finished` is called even where no reduction has numbers.
  StageLoop(StageContext context, Hooks hooks, bool decides_alone = false);

  /// Advances by `steps` >= 1 steps. Collective.
  /// @param ends_early  calls `finished` after each round of steps for the run. A deferred reduction reports on the
  ///                    round before: a round of one stage is then undone.
  Progress run(std::int64_t steps, bool ends_early = false);
  /// Discards the numbers of reductions, as before a run.
  void forget_numbers();
  /// Collects the latest numbers of all reductions, stage by stage. Previous numbers stay where no newer ones exist.
  std::span<const double> collect_numbers();
  /// Returns the numbers collected last.
  std::span<double> latest() { return latest_; }
  /// Undoes the last round of steps: fields of several slots are as they were before it, and reductions in flight end
  /// without numbers.
  void take_back();
  /// Stores the beginning of a round of steps, for take_back().
  void begin_round() { before_ = at; }

  BoundStage& stage(int number) const { return *stages_[number]; }
  int stages() const { return static_cast<int>(stages_.size()); }
  const std::vector<std::unique_ptr<BoundStage>>& all() const { return stages_; }

  FieldTime at;

 private:
  void run_group(const StageGroup& group, int count, bool last);
  void run_stage(BoundStage& stage, int count, bool last, std::int64_t iteration);
  bool has_results(int first, int end) const;
  bool has_enough(int stage, int end);
  bool reports_late() const;

  const Candidate& candidate_;
  Hooks hooks_;
  bool decides_alone_;
  std::vector<std::unique_ptr<BoundStage>> stages_;
  std::vector<StageGroup> groups_;
  std::vector<double> latest_;             // numbers of all reductions, stage by stage
  std::vector<std::size_t> first_number_;  // by stage: its first number in latest_; one past the last stage
  FieldTime before_;
};

}  // namespace haloscope
