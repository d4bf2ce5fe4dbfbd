#include "haloscope/model/advise.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "haloscope/error.hpp"
#include "haloscope/model/sampling.hpp"

namespace haloscope::model {

namespace {

constexpr std::size_t contenders = 6;  // candidates that are compared with the best
constexpr double margin = 0.05;        // candidates this near are equal where the profile gives no intervals
constexpr double clearly = 1 - 1e-9;
constexpr double agreeing = 0.05;  // part of the draws that may disagree

/// What could differ on the machine: parameters in a section of the profile, which are scaled.
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
      {"time to hand work to the device", "device", {"operation_s", "notice_s", "signal_s"}}};
  return all;
}

/// A candidate that has a price.
struct Entrant {
  Choice choice;
  std::unique_ptr<const Case> of;
  Predicted predicted;
  double time_s() const { return predicted.prediction.time_s; }
};

/// Why candidates have no price.
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

/// Whether two choices have the same app, problem and layout.
bool is_like(const Choice& a, Choice b) {
  b.strategy = a.strategy;
  b.stage_strategies = a.stage_strategies;
  b.schedule = a.schedule;
  b.depth = a.depth;
  b.substeps = a.substeps;
  return a == b;
}

/// Predicts choices that differ in when and how messages move, mostly, and keeps what they share.
class Pricer {
 public:
  Pricer(const Profile& profile, const Setting& setting) : profile_(profile), setting_(setting) {}

  /// Null for an illegal choice, whose reason is then noted.
  std::optional<Entrant> price(const Choice& choice, Refused& refused) {
    if (!base_ || !is_like(given_, choice)) prepare(choice);
    given_ = choice;
    current_ = on_nodes(choice, *placed_);  // what base_ refers to
    if (const std::string reason = illegal(*base_); !reason.empty()) {
      refused.add(UsageError(reason));
      return std::nullopt;
    }
    auto of = std::make_unique<const Case>(*base_, profile_, setting_, *names_.back(), shared_, placed_);
    Predicted predicted = predict_case(*of);
    predicted.prediction.choice = choice;
    return Entrant{choice, std::move(of), std::move(predicted)};
  }

 private:
  void prepare(const Choice& choice) {
    base_.reset();
    placed_ = std::make_shared<const Placed>(place_choice(choice, profile_, setting_));
    current_ = on_nodes(choice, *placed_);
    base_.emplace(current_, placed_->sites());
    names_.push_back(std::make_unique<SweepNames>(sweep_names(*base_)));
  }

  const Profile& profile_;
  const Setting& setting_;
  Choice given_, current_;
  std::optional<Candidate> base_;
  std::shared_ptr<const Placed> placed_;
  std::vector<std::unique_ptr<const SweepNames>> names_;  // cases refer to them
  Shared shared_;
};

/// Which candidates cannot be the best: those whose schedule, depth and substeps sweep longer, with whatever strategy, than
/// the best one takes.
class Hopeless {
 public:
  bool contains(const Choice& choice) const {
    const auto known = sweeping_s_.find(group_of(choice));
    return known != sweeping_s_.end() && known->second > beyond * best_s_;
  }
  void learn(const Entrant& entrant) {
    const double sweeping = entrant.predicted.prediction.busy[static_cast<std::size_t>(Term::compute)];
    const auto [known, is_new] = sweeping_s_.try_emplace(group_of(entrant.choice), sweeping);
    if (!is_new) known->second = std::min(known->second, sweeping);
    best_s_ = std::min(best_s_, entrant.time_s());
  }

 private:
  /// Strategies differ in sweeps only by what it costs to read halos that another core has written: far less than this.
  static constexpr double beyond = 1.15;
  using Group = std::tuple<const Schedule*, int, Substeps>;
  static Group group_of(const Choice& c) { return {&*c.schedule, c.depth, c.substeps}; }

  std::map<Group, double> sweeping_s_;
  double best_s_ = std::numeric_limits<double>::infinity();
};

/// Places of possible winners: the first few, and the first of each depth and schedule.
std::vector<std::size_t> rivals_of(const std::vector<Entrant>& found) {
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

/// Possible winners, which can be priced again with other parameters.
class Rivals {
 public:
  Rivals(const std::vector<Entrant>& found, const Profile& profile) : profile_(profile), places_(rivals_of(found)) {
    for (const std::size_t i : places_)
      moving_.emplace_back(*found[i].of, found[i].predicted.prediction, found[i].predicted.worst);
    for (const std::size_t i : places_) choices_.push_back(&found[i].choice);
  }

  /// Which of all candidates cannot be told from the best.
  std::vector<char> equals(const std::vector<Entrant>& found, int samples) const {
    std::vector<char> equal(found.size(), 0);
    equal[0] = 1;
    Draws draws(profile_, samples);
    if (!draws.any()) {
      for (const std::size_t i : places_) equal[i] = found[i].time_s() <= found[0].time_s() * (1 + margin);
    } else {
      std::vector<std::vector<double>> ratios(places_.size());
      draws.each([&](const Profile& drawn) {
        const double best = moving_[0].time(drawn);
        for (std::size_t r = 1; r < places_.size(); ++r) ratios[r].push_back(moving_[r].time(drawn) / best);
      });
      for (std::size_t r = 1; r < places_.size(); ++r) equal[places_[r]] = is_equal(ratios[r]);
    }
    if (std::all_of(equal.begin(), equal.begin() + static_cast<long>(std::min(contenders, equal.size())),
                    [](char e) { return e != 0; }))  // more may be equal than were looked at
      for (std::size_t i = 0; i < found.size(); ++i)
        equal[i] = equal[i] || found[i].time_s() <= found[0].time_s() * (1 + margin);
    return equal;
  }

  /// Which changes of the machine would put another candidate first.
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
  /// Whether a candidate is faster than the best in more draws than may disagree.
  static bool is_equal(std::vector<double> ratios) {
    const auto faster = std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio <= 1; });
    return static_cast<double>(faster) > agreeing * static_cast<double>(ratios.size());
  }
  /// The candidate that another profile puts first; null when it is the same.
  const Choice* first_with(const Profile& profile) const {
    std::vector<double> times;
    for (const Moving& rival : moving_) times.push_back(rival.time(profile));
    const auto first = std::min_element(times.begin(), times.end());
    return *first < times[0] * clearly ? choices_[static_cast<std::size_t>(first - times.begin())] : nullptr;
  }

  const Profile& profile_;
  std::vector<std::size_t> places_;
  std::vector<Moving> moving_;
  std::vector<const Choice*> choices_;
};

/// Strategies that are tried, by pattern.
std::vector<Strategy> strategies_for(const Choice& choice) {
  std::vector<std::string> names = choice.device.empty() ? strategy_names() : device_strategy_names();
  if (!choice.device.empty()) names.push_back("ordered/p2p");  // of walls
  std::erase_if(names, [](const std::string& name) { return name.find('/') == std::string::npos; });
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.substr(0, a.find('/')) < b.substr(0, b.find('/'));
  });
  return {names.begin(), names.end()};
}

}  // namespace

const std::vector<int>& usual_depths() {
  static const std::vector<int> depths{1, 2, 4, 8, 16};
  return depths;
}

// The dimensions of the space of candidates. A further one is a further loop, outside of those whose choices move the
// same data.
std::vector<Choice> candidates_of(const Choice& choice, const std::vector<int>& depths) {
  const std::vector<Strategy> strategies = strategies_for(choice);
  std::vector<Choice> found;
  Choice one = choice;
  for (const int depth : depths)
    for (const Strategy& strategy : strategies)
      for (const Schedule* schedule : schedules())
        for (const Substeps substeps : {Substeps::full, Substeps::shrink, Substeps::blocked}) {
          if (depth <= 1 && substeps != Substeps::full) continue;
          one.depth = depth;
          one.strategy = strategy;
          one.schedule = schedule->name;
          one.substeps = substeps;
          found.push_back(one);
        }
  return found;
}

Advice advise(const std::vector<Choice>& candidates, const Profile& profile, const Setting& setting, int samples,
              Extent extent) {
  if (!candidates.empty() && candidates.front().device.empty())
    require_kernels(profile, sweep_names(Candidate(candidates.front())));
  Pricer pricer(profile, setting);
  std::vector<Entrant> found;
  Refused refused;
  Hopeless hopeless;
  for (const Choice& choice : candidates) try {
      if (extent == Extent::best && hopeless.contains(choice)) continue;
      auto entrant = pricer.price(choice, refused);
      if (!entrant) continue;
      hopeless.learn(*entrant);
      found.push_back(std::move(*entrant));
    } catch (const Error& error) {
      if (error.exit_code() == Exit::failed) throw;
      refused.add(error);
    }
  if (found.empty()) refused.raise();
  std::stable_sort(found.begin(), found.end(),
                   [](const Entrant& a, const Entrant& b) { return a.time_s() < b.time_s(); });
  const Rivals rivals(found, profile);
  const std::vector<char> equal = rivals.equals(found, samples);
  Advice advice{{}, {}, std::move(refused.all)};
  if (extent == Extent::all) advice.changes = rivals.changes();
  if (extent == Extent::best) found[0].predicted.prediction = with_interval(*found[0].of, found[0].predicted, samples);
  for (std::size_t i = 0; i < found.size(); ++i) {
    advice.candidates.push_back({std::move(found[i].predicted.prediction), equal[i] != 0});
  }
  return advice;
}

}  // namespace haloscope::model
