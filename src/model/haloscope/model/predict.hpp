// Predictions: the time of a step and its breakdown from a choice and a machine profile. Pure: no MPI, no clock.
//
// Ranks are put into classes, one of each class gets costs, and all classes are simulated together.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "haloscope/model/costed_candidate.hpp"

namespace haloscope::model {

constexpr int usual_samples = 100;  // of the profile's parameters, for intervals

/// The expected cost of a choice; times in seconds per time step.
struct Prediction {
  Choice choice;
  std::string profile;
  PaceRatios pace{};  ///< pace of the prediction over the pace at which the profile was calibrated
  double time_s = 0;
  /// 90 % intervals of the step and of exchange_s(): from held-out measurements. Where the profile has none, the step's
  /// interval comes from its parameters' intervals and its discrepancy; otherwise it has none.
  std::optional<std::array<double, 2>> interval, exchange_interval;
  std::string interval_from;  ///< the regime of the held-out measurements, or "all"; "": from the parameters
  Terms terms{};              ///< parts along the critical path of the slowest class of ranks, which add up to time_s
  Terms busy{};               ///< the same terms, hidden or not
  int worst_rank = 0;         ///< the first rank of that class
  int worst_node = 0;         ///< the node that sends most bytes to others
  std::int64_t worst_node_bytes = 0;
  int nodes = 1, classes = 1;
  int messages = 0;  ///< sent by the worst rank in the exchanges of all stages
  std::int64_t bytes = 0;
  std::array<std::int64_t, 2> message_bytes{};  ///< min and max
  std::string
      bound;  ///< "latency-bound" or "bandwidth-bound", by the larger part of its mean message; "" without messages
  std::vector<std::string> outside;  ///< costs needed beyond the calibrated range
  std::vector<std::string> notes;

  double term(Term which) const { return terms[static_cast<std::size_t>(which)]; }
  /// The exposed part of the exchange: without computing, reductions and the overhead of running a program.
  double exchange_s() const { return time_s - term(Term::compute) - term(Term::reduction) - term(Term::runner); }
};

/// The regime of a prediction: the largest of its terms; messages are split into latency and bytes.
/// @param exchange  only of exchange_s().
std::string regime_of(const Prediction& prediction, bool exchange);

/// The larger part of a prediction's mean message, latency or bytes, between the nodes if there are several; empty
/// without messages.
std::string bound_of(const Prediction& prediction, const Profile& profile);

/// A candidate in step: the simulated classes of ranks, and the mean round of the slowest.
struct StepTiming {
  std::vector<RankClass> classes;
  std::size_t all = 0;  ///< number of classes
  std::size_t slowest = 0;
  RoundTime mean;

  const RankClass& worst() const { return classes[slowest]; }
  double step_s(const CostedCandidate& of) const { return mean.seconds / of.steps; }
};
/// Simulates a candidate in step with all other ranks, until long after the start.
/// @param singly  times every rank instead of one per class (slow; for checks).
StepTiming time_step(const CostedCandidate& of, bool singly = false);
/// The sensitivity of a candidate's time to the parameters of the profile.
class Sensitivity {
 public:
  Sensitivity(const CostedCandidate& of, const StepTiming& carried);
  /// Returns the seconds per step with another profile. Pure: threads may share it.
  double time(const Profile& profile) const;

 private:
  const CostedCandidate& case_;
  double time_s_;
  RankClass worst_;
  double usual_;
};

/// The predicted time of a step, without an interval.
Prediction describe(const CostedCandidate& of, const StepTiming& carried);
/// The prediction with its interval: by held-out measurements where the profile has some, otherwise from its times by
/// samples of the profile's parameters, which `draw` computes; unchanged without either.
Prediction with_interval(Prediction prediction, const Profile& profile,
                         const std::function<std::vector<double>()>& draw);

/// The predicted time of a step.
/// @throws UsageError when the choice cannot run, UnavailableError when the profile lacks a cost that it needs.
/// Cost: microseconds per class of ranks and sample, a second for 10^5 ranks.
Prediction predict(const Choice& choice, const Profile& profile, const Setting& setting = {},
                   int samples = usual_samples, bool singly = false);

}  // namespace haloscope::model
