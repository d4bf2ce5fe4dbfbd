#include "haloscope/model/advise.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "haloscope/error.hpp"
#include "haloscope/model/groups.hpp"
#include "haloscope/model/sampling.hpp"

namespace haloscope::model {

namespace {

constexpr std::size_t contenders = 6;  // candidates that are compared with the best
/// Times within this part of each other are equal if the profile has no intervals; among equal candidates a
/// simpler one is taken.
constexpr double margin = 0.05;
constexpr double clearly = 1 - 1e-9;
constexpr double agreeing = 0.05;  // part of the samples in which a worse candidate may be the faster one

/// A possible change of the machine: parameters in a section of the profile, which are scaled.
struct Change {
  const char* words;
  const char* section;
  std::vector<std::string> names;
};
const std::vector<Change>& changes() {
  static const std::vector<Change> all{
      {"latency of messages", "network", {"latency_s"}},
      {"time per byte of messages", "network", {"per_byte_s"}},
      {"time to pack", "pack", {"latency_s", "per_byte_s"}},
      {"time to sweep", "kernels", {"fixed_s", "per_cell_s"}},
      {"time to pack on the device and to copy to and from it", "device", {"latency_s", "per_byte_s"}},
      {"time to sweep on the device", "device", {"fixed_s", "per_cell_s"}},
      {"time to enqueue work on the device", "device", {"operation_s", "notice_s", "signal_s"}}};
  return all;
}

/// A candidate with its predicted time.
struct TimedCandidate {
  Choice choice;
  std::unique_ptr<const CostedCandidate> of;
  StepTiming carried;
  double time_s = 0;
};

/// The reasons why candidates have no predicted time.
class Refused {
 public:
  void add(const Error& error) {
    const auto [place, is_new] = places_.try_emplace(error.what(), all.size());
    if (is_new) all.emplace_back(error.what(), 0);
    ++all[place->second].second;
    const bool lacking = error.exit_code() == Exit::unavailable;
    if (!last_ || lacking) last_ = error;
  }
  void raise() const {
    if (last_) throw *last_;
    throw UsageError("there is nothing to advise on; give at least one depth");
  }
  std::vector<std::pair<std::string, int>> all;

 private:
  std::optional<Error> last_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// True if two choices have the same app, problem and layout.
bool is_like(const Choice& a, Choice b) {
  b.strategy = a.strategy;
  b.stage_strategies = a.stage_strategies;
  b.schedule = a.schedule;
  b.depth = a.depth;
  b.substeps = a.substeps;
  return a == b;
}

/// Predicts choices. Caches everything that successive choices share, which differ mostly in when and how messages
/// move.
class Pricer {
 public:
  Pricer(const Profile& profile, const Setting& setting) : profile_(profile), setting_(setting) {}

  /// Returns null for an illegal choice and notes the reason.
  std::optional<TimedCandidate> price(const Choice& choice, Refused& refused) {
    if (!base_ || !is_like(last_, choice)) prepare(choice);
    last_ = choice;
    current_ = on_nodes(choice, *placed_);  // base_ refers to it
    if (const std::string reason = haloscope::refused(*base_); !reason.empty()) {
      refused.add(UsageError(reason));
      return std::nullopt;
    }
    auto of = std::make_unique<const CostedCandidate>(*base_, profile_, setting_, *names_.back(), shared_, placed_);
    StepTiming carried = time_step(*of);
    const double time_s = carried.step_s(*of);
    return TimedCandidate{choice, std::move(of), std::move(carried), time_s};
  }

 private:
  void prepare(const Choice& choice) {
    base_.reset();
    placed_ = std::make_shared<const RankMapping>(place_choice(choice, profile_, setting_));
    current_ = on_nodes(choice, *placed_);
    base_.emplace(current_, placed_->sites());
    names_.push_back(std::make_unique<SweepNames>(sweep_names(*base_)));
  }

  const Profile& profile_;
  const Setting& setting_;
  Choice last_, current_;
  std::optional<Candidate> base_;
  std::shared_ptr<const RankMapping> placed_;
  std::vector<std::unique_ptr<const SweepNames>> names_;  // costed candidates refer to them
  PlanCache shared_;
};

/// Finds candidates that cannot be the best. Those candidates take longer than the best one, judged by others that have
/// equal sweeps or an equal exchange.
class Pruner {
 public:
  bool contains(const Choice& choice) {
    const auto known = sweeping_s_.find(group_of(choice));
    return known != sweeping_s_.end() && known->second + exchanging_s(choice) > possible_s();
  }
  void learn(const TimedCandidate& entrant) {
    const Choice& choice = entrant.choice;
    const RoundTime& mean = entrant.carried.mean;
    const double sweeping = mean.busy[static_cast<std::size_t>(Term::compute)] / entrant.of->steps;
    keep_least(sweeping_s_, group_of(choice), sweeping);
    Exchanging& known = of_strategy(choice);
    keep_least(known.exposed_s, {choice.depth, &*choice.schedule}, entrant.time_s - sweeping);
    if (takes_turns(choice)) keep_least(known.unhidden_s, choice.depth, mean.unhidden / entrant.of->steps - sweeping);
    best_s_ = std::min(best_s_, entrant.time_s);
  }
  /// Seconds up to which a candidate may be indistinguishable from the best.
  double possible_s() const { return beyond * best_s_; }

 private:
  /// Times learnt from some candidates hold for others within much less than this: strategies differ in sweeps by the
  /// cost of reading halos that another core has written, schedules differ in exchanges by the calls between tiles.
  static constexpr double beyond = 1.15;
  using Group = std::tuple<const Schedule*, int, Substeps>;
  static Group group_of(const Choice& c) { return {&*c.schedule, c.depth, c.substeps}; }
  /// True if one thread both sweeps and exchanges.
  static bool takes_turns(const Choice& c) { return c.threads == 1 && c.device.empty(); }

  /// The minimum that a strategy takes for everything but sweeps.
  struct Exchanging {
    std::map<std::pair<int, const Schedule*>, double> exposed_s;  ///< by depth and schedule, regardless of their sweeps
    std::map<int, double> unhidden_s;                             ///< by depth: the part that no schedule can hide
  };
  template <class Map>
  static void keep_least(Map& known, const typename Map::key_type& key, double seconds) {
    const auto [place, is_new] = known.try_emplace(key, seconds);
    if (!is_new) place->second = std::min(place->second, seconds);
  }
  double exchanging_s(const Choice& choice) {
    const Exchanging& known = of_strategy(choice);
    if (const auto found = known.exposed_s.find({choice.depth, &*choice.schedule}); found != known.exposed_s.end())
      return found->second;
    const auto found = known.unhidden_s.find(choice.depth);
    return found != known.unhidden_s.end() ? found->second : 0.0;
  }
  /// Successive choices mostly have the same strategy.
  Exchanging& of_strategy(const Choice& choice) {
    if (!latest_ || !(strategy_ == choice.strategy)) {
      strategy_ = choice.strategy;
      latest_ = &exchanging_[to_string(strategy_)];
    }
    return *latest_;
  }

  std::map<Group, double> sweeping_s_;
  std::unordered_map<std::string, Exchanging> exchanging_;
  Strategy strategy_;
  Exchanging* latest_ = nullptr;
  double best_s_ = std::numeric_limits<double>::infinity();
};

/// Positions of possible winners: the first few, and the first of each depth and schedule.
std::vector<std::size_t> rivals_of(const std::vector<TimedCandidate>& found) {
  std::set<int> depths;
  std::set<std::string> schedules;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool first_of_depth = depths.insert(found[i].choice.depth).second;
    const bool first_of_schedule = schedules.insert(found[i].choice.schedule->name).second;
    if (i < contenders || first_of_depth || first_of_schedule) kept.push_back(i);
  }
  return kept;
}

/// Possible winners, which can be timed again with other parameters.
class Finalists {
 public:
  Finalists(const std::vector<TimedCandidate>& found, const Profile& profile)
      : profile_(profile), places_(rivals_of(found)) {
    for (const std::size_t i : places_) moving_.emplace_back(*found[i].of, found[i].carried);
    for (const std::size_t i : places_) choices_.push_back(&found[i].choice);
  }

  /// Marks the candidates that the samples cannot distinguish from the best; only the best without samples.
  std::vector<char> equals(const std::vector<TimedCandidate>& found, int samples) {
    std::vector<char> equal(found.size(), 0);
    equal[0] = 1;
    ParameterSamples draws(profile_, samples);
    if (!draws.any()) return equal;
    const double enough = agreeing * samples;  // samples in which it is faster
    std::vector<int> faster(places_.size(), 0);
    draws.each([&](const Profile& drawn) {
      const double best = times_.emplace_back(moving_[0].time(drawn));
      for (std::size_t r = 1; r < places_.size(); ++r)
        if (faster[r] <= enough && moving_[r].time(drawn) <= best) ++faster[r];
    });
    for (std::size_t r = 1; r < places_.size(); ++r) equal[places_[r]] = faster[r] > enough;
    if (std::all_of(equal.begin(), equal.begin() + static_cast<long>(std::min(contenders, equal.size())),
                    [](char e) { return e != 0; }))  // more candidates may be equal than were compared
      for (std::size_t i = 0; i < found.size(); ++i)
        equal[i] = equal[i] || found[i].time_s <= found[0].time_s * (1 + margin);
    return equal;
  }

  /// Times of the best candidate, by the samples of equals().
  const std::vector<double>& times() const { return times_; }

  /// Lists the changes of the machine that would put another candidate first.
  std::vector<std::string> changes() const {
    std::vector<std::string> texts;
    for (const Change& change : model::changes())
      for (const double factor : {2.0, 0.5}) {
        Profile scaled = profile_;
        bool any = false;
        visit_parameters(scaled, [&](const std::string& section, const char* name, Cost& cost) {
          if (section != change.section) return;
          any = true;
          if (std::find(change.names.begin(), change.names.end(), name) != change.names.end()) cost.value *= factor;
        });
        if (const Choice* first = any ? first_with(scaled) : nullptr)
          texts.push_back(std::string("with ") + (factor > 1 ? "twice" : "half") + " the " + change.words + ", " +
                          name_of(*first) + " would be first");
      }
    return texts;
  }

 private:
  /// Returns the candidate that another profile puts first, null when it is the same one.
  const Choice* first_with(const Profile& profile) const {
    std::vector<double> times;
    for (const Sensitivity& rival : moving_) times.push_back(rival.time(profile));
    const auto first = std::min_element(times.begin(), times.end());
    return *first < times[0] * clearly ? choices_[static_cast<std::size_t>(first - times.begin())] : nullptr;
  }

  const Profile& profile_;
  std::vector<std::size_t> places_;
  std::vector<Sensitivity> moving_;
  std::vector<const Choice*> choices_;
  std::vector<double> times_;
};

std::vector<Prediction> describe_all(const std::vector<TimedCandidate>& found) {
  std::vector<Prediction> predictions;
  for (const TimedCandidate& entrant : found) {
    predictions.push_back(describe(*entrant.of, entrant.carried));
    predictions.back().choice = entrant.choice;
  }
  return predictions;
}

std::vector<int> grouped(const std::vector<Prediction>& found, const std::vector<char>& alike, const Profile& profile) {
  std::vector<const Prediction*> predictions;
  for (const Prediction& prediction : found) predictions.push_back(&prediction);
  return group(predictions, alike, profile, ParameterSamples(profile, 1).any() ? 0.0 : margin);
}

/// Returns the position of each group's simplest member among those within the margin of its fastest; of equally simple
/// ones the fastest.
std::vector<std::size_t> simplest_of(const std::vector<TimedCandidate>& found, const std::vector<int>& groups) {
  std::vector<std::size_t> simplest;
  std::vector<double> limits;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto number = static_cast<std::size_t>(groups[i]);
    if (number == simplest.size()) {
      simplest.push_back(i);
      limits.push_back(found[i].time_s * (1 + margin));
    } else if (found[i].time_s <= limits[number] && is_simpler(found[i].choice, found[simplest[number]].choice)) {
      simplest[number] = i;
    }
  }
  return simplest;
}

/// True if an exchange of the choice's app moves several fields.
bool moves_several_fields(const Choice& choice) {
  const Candidate candidate(choice);
  for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage)
    if (exchanged(candidate, stage).size() > 1) return true;
  return false;
}

/// The same strategies with fields exchanged sequentially, for the plain patterns and transports that can.
std::vector<std::string> by_field(const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    for (const std::string pattern : {"ordered/", "direct/"})
      for (const Merge fields : {Merge::serial, Merge::pipelined}) {
        if (name.rfind(pattern, 0) != 0) continue;
        const std::string one =
            name.substr(0, pattern.size() - 1) + ":fields=" + to_word(fields) + name.substr(pattern.size() - 1);
        try {
          static_cast<void>(Strategy(one));
          found.push_back(one);
        } catch (const UsageError&) {  // its rounds cannot be in flight concurrently
        }
      }
  return found;
}

/// Strategies that are tried, by pattern.
std::vector<Strategy> strategies_for(const Choice& choice) {
  std::vector<std::string> names = choice.device.empty() ? strategy_names() : device_strategy_names();
  if (!choice.device.empty()) names.push_back("ordered/p2p");  // of walls
  std::erase_if(names, [](const std::string& name) { return name.find('/') == std::string::npos; });
  if (moves_several_fields(choice))
    for (std::string& name : by_field(names)) names.push_back(std::move(name));
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.substr(0, a.find('/')) < b.substr(0, b.find('/'));
  });
  return {names.begin(), names.end()};
}

/// Schedules that take a depth, for the memory in which a choice stores its fields.
std::vector<const Schedule*> schedules_for(const Choice& choice, int depth) {
  std::vector<const Schedule*> found = schedules();
  std::erase_if(found, [&](const Schedule* schedule) {
    return !(choice.device.empty() ? schedule->on_host : schedule->on_device) || (depth > 1 && !schedule->deep);
  });
  return found;
}

std::vector<Substeps> substeps_for(const Schedule& schedule, int depth) {
  if (depth <= 1) return {Substeps::full};
  if (!schedule.blocked) return {Substeps::full, Substeps::shrink};
  return {Substeps::full, Substeps::shrink, Substeps::blocked};
}

}  // namespace

const std::vector<int>& usual_depths() {
  static const std::vector<int> depths{1, 2, 4, 8, 16};
  return depths;
}

// The dimensions of the space of candidates. A further dimension is a further loop, outside the loops whose choices
// move the same data.
Candidates candidates_of(const Choice& choice, const std::vector<int>& depths) {
  return [choice, depths](const std::function<void(const Choice&)>& visit) {
    const std::vector<Strategy> strategies = strategies_for(choice);
    Choice one = choice;
    for (const int depth : depths)
      for (const Strategy& strategy : strategies) {
        one.depth = depth;
        one.strategy = strategy;
        for (const Schedule* schedule : schedules_for(choice, depth))
          for (const Substeps substeps : substeps_for(*schedule, depth)) {
            one.schedule = *schedule;
            one.substeps = substeps;
            visit(one);
          }
      }
  };
}

Candidates candidates_of(std::vector<Choice> list) {
  return [list = std::move(list)](const std::function<void(const Choice&)>& visit) {
    std::for_each(list.begin(), list.end(), visit);
  };
}

Advice advise(const Candidates& candidates, const Profile& profile, const Setting& setting, int samples,
              Extent extent) {
  Pricer pricer(profile, setting);
  std::vector<TimedCandidate> found;
  Refused refused;
  Pruner hopeless;
  bool is_first = true;
  candidates([&](const Choice& choice) {
    if (std::exchange(is_first, false) && choice.device.empty())
      require_kernels(profile, sweep_names(Candidate(choice)));
    try {
      if (extent == Extent::best && hopeless.contains(choice)) return;
      auto entrant = pricer.price(choice, refused);
      if (!entrant) return;
      hopeless.learn(*entrant);
      found.push_back(std::move(*entrant));
    } catch (const Error& error) {
      if (error.exit_code() == Exit::failed) throw;
      refused.add(error);
    }
  });
  if (found.empty()) refused.raise();
  if (extent == Extent::best)
    std::erase_if(found, [&](const TimedCandidate& e) { return e.time_s > hopeless.possible_s(); });
  std::stable_sort(found.begin(), found.end(),
                   [](const TimedCandidate& a, const TimedCandidate& b) { return a.time_s < b.time_s; });
  Finalists rivals(found, profile);
  const std::vector<char> alike = rivals.equals(found, samples);
  std::vector<Prediction> predictions = describe_all(found);
  const std::vector<int> groups = grouped(predictions, alike, profile);
  Advice advice{{}, simplest_of(found, groups), {}, std::move(refused.all)};
  if (extent == Extent::all) advice.changes = rivals.changes();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (extent == Extent::best && i == 0 && samples > 0)
      predictions[0] = with_interval(std::move(predictions[0]), profile, [&] { return rivals.times(); });
    advice.candidates.push_back({std::move(predictions[i]), groups[i]});
  }
  return advice;
}

}  // namespace haloscope::model
