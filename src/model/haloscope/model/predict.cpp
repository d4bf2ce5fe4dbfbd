#include "haloscope/model/predict.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "haloscope/error.hpp"
#include "haloscope/model/sampling.hpp"
#include "haloscope/simulate/simulator.hpp"

namespace haloscope::model {

namespace {

/// Returns the node that sends most bytes to others, and their number in one exchange.
std::pair<int, std::int64_t> worst_node(const Kinds& kinds, const RankPlaces& places) {
  std::vector<std::int64_t> sent(static_cast<std::size_t>(*std::max_element(places.node.begin(), places.node.end())) +
                                 1);
  for (const Kind& kind : kinds)
    for (std::size_t i = 0; i < kind.members.size(); ++i) {
      const int own = places.node[kind.members[i]];
      for (std::size_t m = 0; m < kind.messages.size(); ++m)
        if (kind.messages[m].out && places.node[kind.peer(i, m)] != own) sent[own] += kind.messages[m].bytes;
    }
  const auto most = std::max_element(sent.begin(), sent.end());
  return {static_cast<int>(most - sent.begin()), *most};
}

/// Lists the costs needed beyond the calibrated range.
std::vector<std::string> outside_of(const CostedCandidate& of, const std::vector<RankClass>& found) {
  std::set<std::pair<int, std::string>> needed;  // kinds and localities
  std::map<std::string, Locality> named;
  for (const RankClass& c : found)
    for (const Locality near : c.near) {
      needed.insert({c.kind, to_string(near)});
      named[to_string(near)] = near;
    }
  static const std::string labels[]{"message bytes (self)", "message bytes (socket)", "message bytes (node)",
                                    "message bytes (network)"};
  for (const auto& [kind, near] : needed) {
    const Segments& law = of.profile.messages(named[near]).segments;
    for (const Message& message : of.kinds()[static_cast<std::size_t>(kind)].messages)
      of.prices.range.check(labels[static_cast<std::size_t>(named[near])].c_str(), static_cast<double>(message.bytes),
                            law.front().start, law.back().end);
  }
  std::vector<std::string> texts = of.prices.range.texts();
  for (const auto& [name, near] : named)
    if (!of.profile.has_messages(near))
      texts.push_back("messages of class " + name + ", which the profile lacks; the nearest class counts");
  return texts;
}

/// Relative ends of an interval with the profile's discrepancy added, by the shares of sweeps and exchange.
std::array<double, 2> widened(const std::array<double, 2>& spread, const Prediction& p, const Profile& profile) {
  const double computing = p.time_s > 0 ? p.term(Term::compute) / p.time_s : 0.0;
  const double away = tail_deviations() * std::hypot(profile.compute_discrepancy * computing,
                                                     profile.exchange_discrepancy * (1 - computing));
  const auto off = [](double end) { return end < 1 ? 1 - end : end - 1; };
  return {std::max(0.0, 1 - std::hypot(off(spread[0]), 1 - std::exp(-away))),
          1 + std::hypot(off(spread[1]), std::exp(away) - 1)};
}

std::vector<RoundTime> time_step(const CostedCandidate& of, const std::vector<RankClass>& classes) {
  std::vector<Timeline> tracks;
  for (const RankClass& c : classes) tracks.push_back(of.track(c, of.prices));
  return steady_state(tracks);
}

[[noreturn]] void refuse_costs() {
  throw UsageError("the time of a step is not finite with the costs of the profile; calibrate the machine again");
}

void check_finite(const Prediction& p) {
  bool finite = std::isfinite(p.time_s);
  for (const Terms* terms : {&p.terms, &p.busy})
    for (const double seconds : *terms) finite = finite && std::isfinite(seconds);
  for (const auto& interval : {p.interval, p.exchange_interval})
    for (const double end : interval.value_or(std::array<double, 2>{})) finite = finite && std::isfinite(end);
  if (!finite) refuse_costs();
}

/// The class that takes longest. Several in step differ by rounding; of them the one that waits least for others.
std::size_t slowest_of(const std::vector<RoundTime>& means) {
  constexpr double alike = 1 - 1e-12;
  double longest = 0, busiest = 0;
  for (const RoundTime& mean : means) longest = std::max(longest, mean.seconds);
  const auto is_last = [&](const RoundTime& mean) { return mean.seconds >= longest * alike; };
  for (const RoundTime& mean : means)
    if (is_last(mean)) busiest = std::max(busiest, mean.working());
  const auto found = std::find_if(means.begin(), means.end(), [&](const RoundTime& mean) {
    return is_last(mean) && mean.working() >= busiest * alike;
  });
  if (found == means.end()) refuse_costs();
  return static_cast<std::size_t>(found - means.begin());
}

}  // namespace

Sensitivity::Sensitivity(const CostedCandidate& of, const StepTiming& carried)
    : case_(of), time_s_(carried.step_s(of)), worst_(carried.worst()), usual_(of.alone(worst_, of.prices)) {}

double Sensitivity::time(const Profile& profile) const {
  const UnitCosts prices(profile, case_.candidate, case_.names);
  return time_s_ * case_.alone(worst_, prices) / usual_;
}

StepTiming time_step(const CostedCandidate& of, bool singly) {
  StepTiming found;
  found.all = singly ? of.placed->node.size() : of.classes().size();
  std::vector<RoundTime> means;
  try {
    found.classes = singly ? of.single_ranks() : of.slowest(of.prices);
    means = time_step(of, found.classes);
  } catch (const simulate::Deadlock&) {  // ranks that take turns: one cannot represent the others
    found.classes = of.single_ranks();
    found.all = found.classes.size();
    means = time_step(of, found.classes);
  }
  found.slowest = slowest_of(means);
  found.mean = means[found.slowest];
  return found;
}

Prediction describe(const CostedCandidate& of, const StepTiming& carried) {
  const RankClass& worst = carried.worst();
  Prediction p;
  p.profile = of.profile.name;
  p.pace = of.profile.pace_ratios;
  p.time_s = carried.step_s(of);
  for (std::size_t term = 0; term < p.terms.size(); ++term) {
    p.terms[term] = carried.mean.terms[term] / of.steps;
    p.busy[term] = carried.mean.busy[term] / of.steps;
  }
  p.worst_rank = worst.rank;
  std::tie(p.worst_node, p.worst_node_bytes) = worst_node(of.kinds(), of.placed->places);
  p.nodes = of.placed->nodes;
  p.classes = static_cast<int>(carried.all);
  for (const Message& message : of.kinds()[static_cast<std::size_t>(worst.kind)].messages) {
    if (!message.out) continue;
    auto& [least, most] = p.message_bytes;
    least = p.messages == 0 ? message.bytes : std::min(least, message.bytes);
    most = std::max(most, message.bytes);
    p.bytes += message.bytes;
    ++p.messages;
  }
  p.bound = bound_of(p, of.profile);
  p.outside = outside_of(of, carried.classes);
  p.notes = of.notes;
  check_finite(p);
  return p;
}

namespace {

/// Sets intervals by held-out measurements. @return true if the profile has any.
bool take_held_out(Prediction& p, const Profile& profile) {
  const auto exchange = held_out_interval(profile.held_out_exchanges, regime_of(p, true), p.exchange_s());
  if (exchange) p.exchange_interval = exchange->ends;
  const auto step = held_out_interval(profile.held_out_steps, regime_of(p, false), p.time_s);
  if (!step) return false;
  p.interval = step->ends;
  p.interval_from = step->regime;
  return true;
}

}  // namespace

Prediction with_interval(Prediction p, const Profile& profile, const std::function<std::vector<double>()>& draw) {
  const std::vector<double> times = take_held_out(p, profile) ? std::vector<double>{} : draw();
  if (!times.empty()) {
    const auto [low, high] = widened(spread_of(times, p.time_s), p, profile);
    p.interval = {p.time_s * low, p.time_s * high};
  }
  check_finite(p);
  return p;
}

namespace {

/// Times of a step by samples of the profile's parameters; none where it has no intervals.
std::vector<double> times_of(const CostedCandidate& of, const StepTiming& carried, int samples) {
  ParameterSamples draws(of.profile, samples);
  std::vector<double> times;
  if (!draws.any()) return times;
  const Sensitivity moving(of, carried);
  draws.each([&](const Profile& drawn) { times.push_back(moving.time(drawn)); });
  return times;
}

}  // namespace

Prediction predict(const Choice& choice, const Profile& profile, const Setting& setting, int samples, bool singly) {
  const auto placed = std::make_shared<const RankMapping>(place_choice(choice, profile, setting));
  const Choice there = on_nodes(choice, *placed);
  const Candidate candidate = legal(there, *placed);
  const SweepNames names = sweep_names(candidate);
  PlanCache shared;
  const CostedCandidate of(candidate, profile, setting, names, shared, placed);
  const StepTiming carried = time_step(of, singly);
  Prediction found = describe(of, carried);
  if (samples > 0) found = with_interval(std::move(found), profile, [&] { return times_of(of, carried, samples); });
  found.choice = choice;
  return found;
}

}  // namespace haloscope::model
