#include "haloscope/stepper/stage_loop.hpp"

#include <algorithm>
#include <utility>

namespace haloscope {

StageLoop::StageLoop(StageContext context, Hooks hooks, bool decides_alone)
    : candidate_(context.candidate),
      hooks_(std::move(hooks)),
      decides_alone_(decides_alone),
      groups_(groups_of(candidate_.step)),
      first_number_{0} {
  context.stages = &stages_;
  for (int number = 0; number < static_cast<int>(candidate_.step.stages.size()); ++number) {
    BoundStage& stage = *stages_.emplace_back(std::make_unique<BoundStage>(context, number));
    first_number_.push_back(first_number_.back());
    for (int r = 0; r < stage.reductions(); ++r) first_number_.back() += stage.reducer(r).size();
  }
  latest_.resize(first_number_.back());
}

Progress StageLoop::run(std::int64_t steps, bool ends_early) {
  Progress progress;
  while (progress.steps < steps) {
    begin_round();
    const int count = static_cast<int>(std::min<std::int64_t>(steps - progress.steps, candidate_.choice.depth));
    for (const StageGroup& group : groups_) run_group(group, count, progress.steps + count == steps);
    at.time += count;
    progress.finished = ends_early && has_enough(-1, stages());
    if (progress.finished && reports_late()) {
      take_back();
      return progress;
    }
    progress.steps += count;
    if (progress.finished) break;
  }
  for (auto& stage : stages_) stage->await_reductions();
  progress.finished = progress.finished || (ends_early && has_enough(-1, stages()));
  return progress;
}

/// Runs a group of stages: once, or as a loop.
void StageLoop::run_group(const StageGroup& group, int count, bool last) {
  const Stage& opening = stage(group.first).stage();
  const std::int64_t most = opening.repeats > 0 ? opening.most : 1;
  if (hooks_.open_group) hooks_.open_group(group);
  for (std::int64_t iteration = 0; iteration < most; ++iteration) {
    if (opening.repeats > 0 && iteration >= opening.least && has_enough(group.first, group.end)) break;
    for (int number = group.first; number < group.end; ++number) run_stage(stage(number), count, last, iteration);
  }
  if (hooks_.close_group) hooks_.close_group(group);
}

void StageLoop::run_stage(BoundStage& stage, int count, bool last, std::int64_t iteration) {
  if (hooks_.before) hooks_.before(stage, iteration);
  at.slot = stage.run(at.slot, at.time, count, last && stage.reductions() > 0);
  if (hooks_.after) hooks_.after(stage);
}

/// Returns true if the loop that a stage opens, or with -1 the run, has finished.
bool StageLoop::has_enough(int stage, int end) {
  const int first = std::max(stage, 0);
  if (!hooks_.finished || !has_results(first, end)) return false;
  const std::size_t from = first_number_[first];
  return hooks_.finished(stage, collect_numbers().subspan(from, first_number_[end] - from));
}

/// Returns true if the reductions of a range of stages have numbers to decide by. Deferred ones have none the first
/// time; reductions of a loop that was not entered do not count.
bool StageLoop::has_results(int first, int end) const {
  bool any = decides_alone_;
  for (int number = first; number < end; ++number)
    for (int r = 0; r < stage(number).reductions(); ++r) {
      const bool none = stage(number).reducer(r).numbers().empty();
      if (none && stage(number).stage().reductions[r].mode == ReduceMode::deferred) return false;
      any = any || !none;
    }
  return any;
}

/// Returns true if the numbers are of the round before; a single rank has no reduction in flight.
bool StageLoop::reports_late() const {
  const std::vector<Reduction>& reductions = stage(0).stage().reductions;
  return stages() == 1 && candidate_.choice.ranks > 1 &&
         std::any_of(reductions.begin(), reductions.end(),
                     [](const Reduction& r) { return r.mode == ReduceMode::deferred; });
}

void StageLoop::take_back() {
  for (auto& stage : stages_) stage->drop_reductions();
  at = before_;
}

void StageLoop::forget_numbers() {
  for (auto& stage : stages_)
    for (int r = 0; r < stage->reductions(); ++r) stage->reducer(r).forget();
}

std::span<const double> StageLoop::collect_numbers() {
  auto at = latest_.begin();
  for (const auto& stage : stages_)
    for (int r = 0; r < stage->reductions(); ++r) {
      const std::span<const double> numbers = stage->reducer(r).numbers();
      std::copy(numbers.begin(), numbers.end(), at);
      at += static_cast<std::ptrdiff_t>(stage->reducer(r).size());
    }
  return latest_;
}

}  // namespace haloscope
