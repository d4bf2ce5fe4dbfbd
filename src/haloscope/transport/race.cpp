#include "haloscope/transport/race.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace haloscope {
namespace {

/// Half width of the interval of a median, in standard deviations of the binomial distribution: about 95 %.
constexpr double deviations = 2;

}  // namespace

Race::Race(int candidates, RaceLimits limits, unsigned seed)
    : limits_(limits), random_(seed + 1), entrants_(static_cast<std::size_t>(candidates)) {
  const auto most = static_cast<std::size_t>(limits.turns) * limits.heats * timed_exchanges;
  for (Entrant& e : entrants_) {
    e.exchanges.reserve(most);
    e.steps.reserve(most);
    e.exchange = e.step = {never, never, never};
  }
  order_.reserve(static_cast<std::size_t>(candidates) * limits.turns);
  draw_order();
}

void Race::add(int candidate, double exchange, double step) {
  Entrant& e = entrants_[static_cast<std::size_t>(candidate)];
  e.exchanges.push_back(exchange);
  e.steps.push_back(step);
}

void Race::judge() {
  for (Entrant& e : entrants_)
    if (e.racing) {
      e.exchange = interval(e.exchanges);
      e.step = interval(e.steps);
    }
  drop_long_steps();
  drop_long_exchanges();
  const Entrant& best = shortest(&Entrant::exchange);
  const auto as_fast = [&](const Entrant& e) {
    return e.racing && e.exchange.middle <= (1 + tolerance) * best.exchange.middle;
  };
  leader_ = static_cast<int>(std::find_if(entrants_.begin(), entrants_.end(), as_fast) - entrants_.begin());
  const auto settled = [&](const Entrant& e) { return !e.racing || &e == &best || is_faster(best, e, 1 + tolerance); };
  order_.clear();
  if (++heat_ < limits_.heats && !std::all_of(entrants_.begin(), entrants_.end(), settled)) draw_order();
}

/// The median of some times, and the interval between the order statistics that enclose it. Sorts them.
Race::Interval Race::interval(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  const std::size_t ended = std::lower_bound(times.begin(), times.end(), never) - times.begin();
  if (2 * ended < times.size() || ended == 0) return {never, never, never};
  const double last = static_cast<double>(ended) - 1, half = 0.5 * deviations * std::sqrt(static_cast<double>(ended));
  const auto at = [&](double place) { return times[static_cast<std::size_t>(std::clamp(place, 0.0, last) + 0.5)]; };
  return {at(0.5 * last - half), at(0.5 * last), at(0.5 * last + half)};
}

/// Whether exchanges of `a` clearly take less than `slack` times those of `b`, and steps are no reason to doubt it.
bool Race::is_faster(const Entrant& a, const Entrant& b, double slack) {
  return a.exchange.high < slack * b.exchange.low && a.step.middle <= (1 + tolerance) * b.step.middle;
}

void Race::drop_long_steps() {
  const Interval best = shortest(&Entrant::step).step;
  for (Entrant& e : entrants_) e.racing = e.racing && (e.step.low <= (1 + tolerance) * best.high);
}

void Race::drop_long_exchanges() {
  const Entrant& best = shortest(&Entrant::exchange);
  for (Entrant& e : entrants_) e.racing = e.racing && (&e == &best || !is_faster(best, e, 1 - tolerance));
}

/// The one of those still racing whose median is shortest.
const Race::Entrant& Race::shortest(Interval Entrant::*time) const {
  const Entrant* best = nullptr;
  for (const Entrant& e : entrants_)
    if (e.racing && (best == nullptr || (e.*time).middle < (best->*time).middle)) best = &e;
  return *best;
}

int Race::second() const {
  int best = -1;
  for (int c = 0; c < static_cast<int>(entrants_.size()); ++c)
    if (c != leader_ && (best < 0 || exchange(c) < exchange(best))) best = c;
  return best;
}

void Race::draw_order() {
  for (int turn = 0; turn < limits_.turns; ++turn) {
    const auto first = static_cast<std::ptrdiff_t>(order_.size());
    for (int c = 0; c < static_cast<int>(entrants_.size()); ++c)
      if (entrants_[static_cast<std::size_t>(c)].racing) order_.push_back(c);
    std::shuffle(order_.begin() + first, order_.end(), random_);
  }
}

}  // namespace haloscope
