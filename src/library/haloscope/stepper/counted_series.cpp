#include "haloscope/stepper/counted_series.hpp"

#include <algorithm>

namespace haloscope {

CountedSeries::CountedSeries(BoundStage& stage) : stage_(stage) {
  std::size_t most = 0;
  for (int r = 0; r < stage.reductions(); ++r) most = std::max(most, stage.reducer(r).size());
  mine_.resize(most);
}

void CountedSeries::ignore(void* context, int reduction) {
  auto& self = *static_cast<CountedSeries*>(context);
  Reducer& reducer = self.stage_.reducer(reduction);
  reducer.take(std::span(self.mine_).first(reducer.size()));
}

/// Runs the series. Only the numbers of the last step are needed; that step is not fused with others and closes the
/// series itself.
void CountedSeries::advance(FieldTime& at, std::int64_t steps) {
  const bool gathers = stage_.reductions() > 0;
  std::int64_t left = steps;
  stage_.divert_reductions(&CountedSeries::ignore, this);
  stage_.run(at.slot, at.time, Series::opening);
  while (left > gathers) {
    const int fused = static_cast<int>(std::min<std::int64_t>(left - gathers, stage_.steps()));
    stage_.run(at.slot, at.time, Series::entry);
    stage_.run(at.slot, at.time, fused, false);
    at.time += fused;
    left -= fused;
  }
  stage_.divert_reductions(nullptr, nullptr);
  if (!gathers) {
    stage_.run(at.slot, at.time, Series::closing);
    return;
  }
  stage_.run(at.slot, at.time, Series::entry);
  stage_.run(at.slot, at.time, 1, true);
  ++at.time;
}

}  // namespace haloscope
