// Predictions: the time of a step and its breakdown from a choice and a machine profile. Pure: no MPI, no clock.
//
// Ranks are put into classes, one of each class is priced, and all are carried out together.
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
  PaceRatios pace{};  ///< that it is for, over the pace at which the profile was calibrated
  double time_s = 0;
  /// 90 % intervals of the step and of exchange_s(): from held-out measurements; of the step, where the profile has no
  /// such, from its parameters' intervals and its discrepancy; else none.
  std::optional<std::array<double, 2>> interval, exchange_interval;
  std::string interval_from;  ///< the regime of those measurements, or "all"; "": from the parameters
  Terms terms{};              ///< parts along the critical path of the slowest class of ranks, which add up to time_s
  Terms busy{};               ///< the same terms, hidden or not
  int worst_rank = 0;         ///< the first rank of that class
  int worst_node = 0;         ///< the one that sends most bytes to other nodes
  std::int64_t worst_node_bytes = 0;
  int nodes = 1, classes = 1;
  int messages = 0;  ///< sent by the worst rank in the exchanges of all stages
  std::int64_t bytes = 0;
  std::array<std::int64_t, 2> message_bytes{};  ///< the least and the largest
  std::string bound;  ///< whether its mean message spends more time on latency or on bytes; "" without messages
  std::vector<std::string> outside;  ///< costs needed beyond the calibrated range
  std::vector<std::string> notes;

  double term(Term which) const { return terms[static_cast<std::size_t>(which)]; }
  /// The exposed part of the exchange: no computing, no reduction, no overhead of carrying out a program.
  double exchange_s() const { return time_s - term(Term::compute) - term(Term::reduction) - term(Term::runner); }
};

/// What bounds a prediction: the largest of its terms; messages are split into latency and bytes.
/// @param exchange  only of exchange_s().
std::string regime_of(const Prediction& prediction, bool exchange);

/// Whether the mean message of a prediction spends more time on latency or on bytes, between the nodes if there are
/// several; empty without messages.
std::string bound_of(const Prediction& prediction, const Profile& profile);

/// A case in step: classes of ranks that were carried out, and the mean round of the slowest.
struct StepTiming {
  std::vector<RankClass> classes;
  std::size_t all = 0;  ///< how many classes there are
  std::size_t slowest = 0;
  RoundTime mean;

  const RankClass& worst() const { return classes[slowest]; }
  double step_s(const CostedCandidate& of) const { return mean.seconds / of.steps; }
};
/// Carries a case out in step with all other ranks, until long after the start.
/// @param singly  price every rank instead of one per class (slow; for checks).
StepTiming time_step(const CostedCandidate& of, bool singly = false);
/// How far the time of a case moves when the parameters of the profile move.
class Sensitivity {
 public:
  Sensitivity(const CostedCandidate& of, const StepTiming& carried);
  /// Seconds per step that another profile would give. Pure: threads may share it.
  double time(const Profile& profile) const;

 private:
  const CostedCandidate& case_;
  double time_s_;
  RankClass worst_;
  double usual_;
};

/// The predicted time of a step, without an interval.
Prediction describe(const CostedCandidate& of, const StepTiming& carried);
/// The prediction with its interval: by held-out measurements where the profile has some, else from its times by draws
/// of the profile's parameters, which `draw` gives; as it is without either.
Prediction with_interval(Prediction prediction, const Profile& profile,
                         const std::function<std::vector<double>()>& draw);

/// The predicted time of a step.
/// @throws UsageError when the choice cannot run, UnavailableError when the profile lacks a cost that it needs.
/// Cost: microseconds per class of ranks and sample, a second for 10^5 ranks.
Prediction predict(const Choice& choice, const Profile& profile, const Setting& setting = {},
                   int samples = usual_samples, bool singly = false);

}  // namespace haloscope::model
