// Simulations for the bridge.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <span>

#include "bindings/python/bridge.h"
#include "bindings/python/profile_handle.hpp"
#include "bindings/python/request.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/model/simulation_input.hpp"

namespace haloscope::bridge {

namespace {

/// A choice on a machine, in the order in which one part refers to another.
struct Simulated {
  Choice choice;
  Candidate candidate;
  model::Setting setting;
  model::SweepNames names;
  model::PlanCache shared;
  model::CostedCandidate of;
  model::SimulationInput cast;

  Simulated(const Choice& unplaced, const model::Profile& profile, const model::Setting& how,
            std::shared_ptr<const model::RankMapping> placed)
      : choice(on_nodes(unplaced, *placed)),
        candidate(model::legal(choice, *placed)),
        setting(how),
        names(model::sweep_names(candidate)),
        of(candidate, profile, setting, names, shared, std::move(placed)),
        cast(of) {}
};

std::unique_ptr<Simulated> simulated(const Json& request, const model::Profile& profile) {
  const Choice choice = choice_of(request);
  const model::Setting setting = setting_of(request);
  return std::make_unique<Simulated>(
      choice, profile, setting,
      std::make_shared<const model::RankMapping>(model::place_choice(choice, profile, setting)));
}

Json json_of_class(const model::Actors& actors, bool opening) {
  Json json{{"rank", actors.rank}, {"opening", static_cast<int>(opening)}, {"stages", actors.stages}};
  auto next = actors.seconds.begin();
  for (const Program& program : actors.programs) {
    json["programs"].push_back(json_of(program));
    Json seconds = Json::array();
    for (std::size_t op = 0; op < program.ops.size(); ++op) seconds.push_back((next++)->seconds);
    json["seconds"].push_back(seconds);
  }
  return json;
}

Json programs_of(const Simulated& s) {
  Json json{{"ranks", s.choice.ranks},     {"steps", s.of.steps}, {"comm_thread", s.cast.has_comm_thread()},
            {"outside", s.cast.outside()}, {"notes", s.of.notes}, {"classes", Json::array()}};
  for (const model::Actors& actors : s.cast.actors())
    json["classes"].push_back(json_of_class(actors, s.cast.has_opening()));
  return json;
}

simulate::Options options_of(const Json& request, const model::CostedCandidate& of) {
  const int steps = value_of(request, "steps", 10);
  if (steps < 1) throw UsageError(std::to_string(steps) + " steps cannot be simulated; use 1 or more");
  simulate::Options options;
  options.rounds = std::max(2, (steps - 1) / of.steps + 1);
  options.counted_from = options.rounds / 2;
  options.noise_s = value_of(request, "noise_s", 0.0);
  options.noise_share = value_of(request, "noise_share", 0.0);
  options.seed = value_of(request, "seed", std::uint64_t{0});
  options.efficiency = of.efficiency;
  options.by_itself = value_of(request, "by_itself", false);
  return options;
}

/// @throws UsageError where the ends of all rounds, with the statistics computed from them, do not fit into free
///         memory.
void require_memory(int rounds, int ranks) {
  const double needed = 2.0 * rounds * ranks * sizeof(double), gib = 1 << 30;
  const auto free = static_cast<double>(available_memory());
  if (free < 0 || needed <= free) return;
  TextStream text;
  text << std::setprecision(3) << rounds << " rounds of " << ranks << " ranks take " << needed / gib
       << " GiB of memory, and " << free / gib << " GiB are free; simulate fewer steps or ranks";
  throw UsageError(text.str());
}

/// A percentile of numbers in any order, interpolated between the two closest.
double percentile(std::vector<double>& numbers, double percent) {
  const double place = percent / 100 * static_cast<double>(numbers.size() - 1);
  const auto low = numbers.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(numbers.begin(), low, numbers.end());
  const double share = place - std::floor(place);
  return share > 0 ? *low + share * (*std::min_element(low + 1, numbers.end()) - *low) : *low;
}

/// Times per time step over the counted rounds.
Json statistics(const simulate::Result& result, const simulate::Options& options, int ranks, int steps) {
  const std::span ends(result.ends);
  const auto end_of = [&](int round) { return ends.subspan(static_cast<std::size_t>(round) * ranks, ranks); };
  const auto before = end_of(options.counted_from - 1), last = end_of(options.rounds - 1);
  const double counted = static_cast<double>(options.rounds - options.counted_from) * steps;
  std::vector<double> lengths;
  double sum = 0;
  for (int round = options.counted_from; round < options.rounds; ++round)
    for (int rank = 0; rank < ranks; ++rank) {
      lengths.push_back((end_of(round)[rank] - end_of(round - 1)[rank]) / steps);
      sum += lengths.back();
    }
  const auto slowest = std::max_element(last.begin(), last.end());
  Json json{{"time_s", (*slowest - *std::max_element(before.begin(), before.end())) / counted},
            {"mean_s", sum / static_cast<double>(lengths.size())},
            {"worst_rank", slowest - last.begin()}};
  for (const int percent : {5, 50, 95, 100})
    json["percentiles"][std::to_string(percent)] = percentile(lengths, percent);
  for (int kind = 0; kind < op_kinds; ++kind)
    json["by_operation"][to_string(static_cast<OpKind>(kind))] = result.seconds[kind] / ranks / counted;
  return json;
}

Json simulation(const Json& request, const model::Profile& profile) {
  const auto s = simulated(request, profile);
  const simulate::Options options = options_of(request, s->of);
  const auto simulator =
      s->cast.make_simulator({value_of(request, "overhead_s", 0.0), value_of(request, "gap_s", 0.0)});
  require_memory(options.rounds, s->choice.ranks);
  const simulate::Result result = simulator->run(options);
  Json json = statistics(result, options, s->choice.ranks, s->of.steps);
  json.update({{"rounds", options.rounds},
               {"steps", options.rounds * s->of.steps},
               {"classes", s->cast.actors().size()},
               {"outside", s->cast.outside()},
               {"notes", s->of.notes},
               {"messages", result.messages},
               {"bytes", result.bytes},
               {"operations", result.operations},
               {"events", result.events}});
  return json;
}

}  // namespace

}  // namespace haloscope::bridge

using namespace haloscope;
using namespace haloscope::bridge;
using bridge::guarded, c::needed;

hs_status hs_programs(const char* request, const hs_profile* profile, int32_t* class_of, const char** json) {
  return answered(json, [&] {
    const auto s = simulated(request_of(request, "request"), needed(profile, "profile").profile);
    const auto& classes = s->cast.class_of();
    std::copy(classes.begin(), classes.end(), &needed(class_of, "class_of"));
    return programs_of(*s);
  });
}

hs_status hs_simulate(const char* request, const hs_profile* profile, const char** json) {
  return answered(json, [&] { return simulation(request_of(request, "request"), needed(profile, "profile").profile); });
}
