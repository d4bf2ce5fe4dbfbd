// The search for the fastest of several candidates, in rounds: clearly slower candidates drop out, the others
// continue until they differ clearly or the rounds are used up. Pure; ranks that add the same times decide equally.
#pragma once

#include <limits>
#include <random>
#include <span>
#include <vector>

namespace haloscope {

/// Limits of the trials.
struct TrialLimits {
  int turns = 4;   ///< of each candidate in a round, >= 1
  int rounds = 6;  ///< maximum, >= 1
};

/// Timed exchanges of a turn: enough that untimed ones, which restore the cache, are not most of the trials; few
/// enough that a short disturbance spoils one turn and not a candidate.
constexpr int timed_exchanges = 4;

/// Seconds of an exchange that has not ended.
constexpr double never = std::numeric_limits<double>::infinity();

/// A comparison of candidates by two times: the time of an exchange, and of a whole step, from the begin of an
/// exchange to the begin of the next one. The step is the relevant time, but has the noise of all work between
/// exchanges; the exchange alone omits work that a candidate leaves to the next sweep, such as fetching cache lines.
/// Therefore a candidate drops out whose steps are clearly longer than another's; among the rest the exchange
/// decides. Where no other exchange can be shorter by more than the tolerance, the trials are over.
///
/// Clearly: the interval of one median (order statistics, about 95 %) ends below the other's, by more than the
/// tolerance.
/// Medians and their intervals do not depend on the size of disturbances, nor on their distribution.
class TrialRounds {
 public:
  /// Differences that are not worth a trial, as a fraction.
  static constexpr double tolerance = 0.02;

  /// @param candidates  >= 1. @param seed of the order of turns: concurrent trials should not keep step.
  TrialRounds(int candidates, TrialLimits limits, unsigned seed);

  /// The candidate of each turn of this round: every remaining one, `turns` times, in random orders, so that no
  /// candidate always coincides with the same phase of the program. Empty once the trials are over.
  std::span<const int> order() const { return order_; }
  /// Adds one timed exchange of a candidate, in seconds; infinite if it never ended. At most the exchanges of a round.
  void add(int candidate, double exchange, double step);
  /// Ends the round, and the trials where the result is clear. Allocates nothing.
  void judge();

  bool over() const { return order_.empty(); }
  /// Returns the fastest so far: the first of the candidates within the tolerance of the shortest median exchange.
  int leader() const { return leader_; }
  /// Returns the one of the others whose median exchange is shortest; -1 where none is left.
  int second() const;
  /// Returns a median, in seconds; infinite where most of a candidate's exchanges never ended, or none was made.
  double exchange(int candidate) const { return candidates_[static_cast<std::size_t>(candidate)].exchange.middle; }
  double step(int candidate) const { return candidates_[static_cast<std::size_t>(candidate)].step.middle; }

 private:
  /// A median and its interval.
  struct Interval {
    double low, middle, high;
  };
  struct TimedCandidate {
    bool remains = true;
    std::vector<double> exchanges{}, steps{};
    Interval exchange{}, step{};
  };
  static Interval interval(std::vector<double>& times);
  static bool is_faster(const TimedCandidate& a, const TimedCandidate& b, double slack);
  void drop_long_steps();
  void drop_long_exchanges();
  const TimedCandidate& shortest(Interval TimedCandidate::*time) const;
  void draw_order();

  TrialLimits limits_;
  std::minstd_rand random_;
  std::vector<TimedCandidate> candidates_;
  std::vector<int> order_;
  int round_ = 0, leader_ = 0;
};

}  // namespace haloscope
