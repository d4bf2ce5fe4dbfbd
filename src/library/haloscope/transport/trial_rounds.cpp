#include "haloscope/transport/trial_rounds.hpp"

#include <algorithm>
#include <cmath>

namespace haloscope {
namespace {

/// Half width of the interval of a median, in standard deviations of the binomial distribution: about 95 %.
constexpr double deviations = 2;

}  // namespace

TrialRounds::TrialRounds(int candidates, TrialLimits limits, unsigned seed)
    : limits_(limits), random_(seed + 1), candidates_(static_cast<std::size_t>(candidates)) {
  const auto most = static_cast<std::size_t>(limits.turns) * limits.rounds * timed_exchanges;
  for (TimedCandidate& e : candidates_) {
    e.exchanges.reserve(most);
    e.steps.reserve(most);
    e.exchange = e.step = {never, never, never};
  }
  order_.reserve(static_cast<std::size_t>(candidates) * limits.turns);
  draw_order();
}

void TrialRounds::add(int candidate, double exchange, double step) {
  TimedCandidate& e = candidates_[static_cast<std::size_t>(candidate)];
  e.exchanges.push_back(exchange);
  e.steps.push_back(step);
}

void TrialRounds::judge() {
  for (TimedCandidate& e : candidates_)
    if (e.remains) {
      e.exchange = interval(e.exchanges);
      e.step = interval(e.steps);
    }
  drop_long_steps();
  drop_long_exchanges();
  const TimedCandidate& best = shortest(&TimedCandidate::exchange);
  const auto as_fast = [&](const TimedCandidate& e) {
    return e.remains && e.exchange.middle <= (1 + tolerance) * best.exchange.middle;
  };
  leader_ = static_cast<int>(std::find_if(candidates_.begin(), candidates_.end(), as_fast) - candidates_.begin());
  const auto settled = [&](const TimedCandidate& e) {
    return !e.remains || &e == &best || is_faster(best, e, 1 + tolerance);
  };
  order_.clear();
  if (++round_ < limits_.rounds && !std::all_of(candidates_.begin(), candidates_.end(), settled)) draw_order();
}

/// Returns the median of some times, and the interval between the order statistics that enclose it. Sorts them.
TrialRounds::Interval TrialRounds::interval(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  const std::size_t ended = std::lower_bound(times.begin(), times.end(), never) - times.begin();
  if (2 * ended < times.size() || ended == 0) return {never, never, never};
  const double last = static_cast<double>(ended) - 1, half = 0.5 * deviations * std::sqrt(static_cast<double>(ended));
  const auto at = [&](double place) { return times[static_cast<std::size_t>(std::clamp(place, 0.0, last) + 0.5)]; };
  return {at(0.5 * last - half), at(0.5 * last), at(0.5 * last + half)};
}

/// Returns true if exchanges of `a` clearly take less than `slack` times the exchanges of `b`, and steps do not
/// contradict it.
bool TrialRounds::is_faster(const TimedCandidate& a, const TimedCandidate& b, double slack) {
  return a.exchange.high < slack * b.exchange.low && a.step.middle <= (1 + tolerance) * b.step.middle;
}

void TrialRounds::drop_long_steps() {
  const Interval best = shortest(&TimedCandidate::step).step;
  for (TimedCandidate& e : candidates_) e.remains = e.remains && (e.step.low <= (1 + tolerance) * best.high);
}

void TrialRounds::drop_long_exchanges() {
  const TimedCandidate& best = shortest(&TimedCandidate::exchange);
  for (TimedCandidate& e : candidates_) e.remains = e.remains && (&e == &best || !is_faster(best, e, 1 - tolerance));
}

/// Returns the candidate with the shortest median among the remaining ones.
const TrialRounds::TimedCandidate& TrialRounds::shortest(Interval TimedCandidate::*time) const {
  const TimedCandidate* best = nullptr;
  for (const TimedCandidate& e : candidates_)
    if (e.remains && (best == nullptr || (e.*time).middle < (best->*time).middle)) best = &e;
  return *best;
}

int TrialRounds::second() const {
  int best = -1;
  for (int c = 0; c < static_cast<int>(candidates_.size()); ++c)
    if (c != leader_ && (best < 0 || exchange(c) < exchange(best))) best = c;
  return best;
}

void TrialRounds::draw_order() {
  for (int turn = 0; turn < limits_.turns; ++turn) {
    const auto first = static_cast<std::ptrdiff_t>(order_.size());
    for (int c = 0; c < static_cast<int>(candidates_.size()); ++c)
      if (candidates_[static_cast<std::size_t>(c)].remains) order_.push_back(c);
    std::shuffle(order_.begin() + first, order_.end(), random_);
  }
}

}  // namespace haloscope
