// Time steps on bound stages: rounds of `depth` steps, loops of stages, ends before the last step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "haloscope/choice.hpp"
#include "haloscope/run/bound_stage.hpp"
#include "haloscope/stage.hpp"

namespace haloscope {

/// How far a run got.
struct Progress {
  std::int64_t steps = 0;  ///< done
  bool finished = false;   ///< App::finished ended it
};

/// Where the fields are: the slot that holds them, and their time step.
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
    /// Whether a loop has been gone through often enough, by the numbers of its reductions; with stage -1, and those of
    /// all stages, whether the run has.
    std::function<bool(int stage, std::span<const double> reduced)> finished;
  };

  /// Collective over context.comm. Everything in the context must outlive it.
  /// @param decides_alone  whether `finished` is asked where no reduction has numbers.
  StageLoop(StageContext context, Hooks hooks, bool decides_alone = false);

  /// Advances by `steps` >= 1 steps. Collective.
  /// @param ends_early  asks after each round of steps whether the run has enough. A deferred reduction reports on the
  ///                    round before: that of one stage is then taken back.
  Progress run(std::int64_t steps, bool ends_early = false);
  /// Forgets the numbers of reductions, as before a run.
  void forget_numbers();
  /// The latest numbers of all reductions, stage by stage. Those of before stay where there are no newer ones.
  std::span<const double> collect_numbers();
  /// Those that were collected last.
  std::span<double> latest() { return latest_; }
  /// Takes the round of steps back that has just been made: fields of several slots are as they were before it, and
  /// reductions in flight end without numbers.
  void take_back();
  /// Notes where a round of steps begins, for take_back().
  void begin_round() { before_ = at; }

  BoundStage& stage(int number) const { return *stages_[static_cast<std::size_t>(number)]; }
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
  std::vector<std::size_t> first_number_;  // by stage, where its own begin in latest_; and one past the last stage
  FieldTime before_;
};

}  // namespace haloscope
