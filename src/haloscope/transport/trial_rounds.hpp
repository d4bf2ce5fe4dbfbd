// Which of several candidates is fastest, found in rounds: those that are clearly slower drop out, the others go on
// until they can be told apart or the rounds are used up. Pure; ranks that add the same times decide alike.
#pragma once

#include <limits>
#include <random>
#include <span>
#include <vector>

namespace haloscope {

/// How long a race may be.
struct TrialLimits {
  int turns = 4;   ///< of each candidate in a round, >= 1
  int rounds = 6;  ///< at most, >= 1
};

/// Timed exchanges of a turn: enough that untimed ones, which restore the cache, are not most of the trials; few enough
/// that a short disturbance spoils one turn and not a candidate.
constexpr int timed_exchanges = 4;

/// Seconds of an exchange that has not ended.
constexpr double never = std::numeric_limits<double>::infinity();

/// A race of candidates by two times: that of an exchange, and that of a whole step, from the begin of an exchange to
/// the begin of the next one. The step is what counts, but has the noise of all that a program does between exchanges;
/// the exchange alone does not see what a candidate leaves for the next sweep to do, as fetching cache lines. So a
/// candidate is out whose steps are clearly longer than another's; among the rest the exchange decides. Where no other
/// exchange can be shorter by more than the tolerance, the race is over.
///
/// Clearly: the interval of one median (order statistics, about 95 %) ends below the other's, by more than the
/// tolerance.
/// Medians and their intervals do not depend on how large disturbances are, nor on their distribution.
class TrialRounds {
 public:
  /// Differences that are not worth a trial, as a fraction.
  static constexpr double tolerance = 0.02;

  /// @param candidates  >= 1. @param seed  of the order of turns: races beside each other should not keep step.
  TrialRounds(int candidates, TrialLimits limits, unsigned seed);

  /// The candidate of each turn of this round: every one that is still racing, `turns` times, in random orders, so that
  /// no candidate always meets the same phase of what the program does. Empty once the race is over.
  std::span<const int> order() const { return order_; }
  /// One timed exchange of a candidate, in seconds; infinite where it never ended. At most as many as a round has.
  void add(int candidate, double exchange, double step);
  /// Ends the round, and the race where nothing is left to find out. Allocates nothing.
  void judge();

  bool over() const { return order_.empty(); }
  /// The fastest so far: of those within the tolerance of the shortest median exchange, the first.
  int leader() const { return leader_; }
  /// The one of the others whose median exchange is shortest; -1 where there is none.
  int second() const;
  /// Medians, in seconds; infinite where most of a candidate's exchanges never ended, or none was made.
  double exchange(int candidate) const { return entrants_[static_cast<std::size_t>(candidate)].exchange.middle; }
  double step(int candidate) const { return entrants_[static_cast<std::size_t>(candidate)].step.middle; }

 private:
  /// A median and the interval that holds it.
  struct Interval {
    double low, middle, high;
  };
  struct TimedCandidate {
    bool racing = true;
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
  std::vector<TimedCandidate> entrants_;
  std::vector<int> order_;
  int round_ = 0, leader_ = 0;
};

}  // namespace haloscope
