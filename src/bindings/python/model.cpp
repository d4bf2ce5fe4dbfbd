// The model for the bridge: profiles, mappings of ranks, predictions, advice.
#include <algorithm>
#include <set>

#include "bindings/python/bridge.h"
#include "bindings/python/profile_handle.hpp"
#include "bindings/python/request.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/model/json.hpp"

namespace haloscope::bridge {

namespace {

int samples_of(const Json& request) {
  const int samples = value_of(request, "samples", model::usual_samples);
  if (samples < 0) throw UsageError(std::to_string(samples) + " samples are not possible; use 0 or more");
  return samples;
}

Json predictions(const Json& request, const model::Profile& profile) {
  const model::Setting setting = setting_of(request);
  const int samples = samples_of(request);
  const bool singly = value_of(request, "singly", false);
  Json found = Json::array();
  for (const Json& choice : part_of(request, "choices"))
    found.push_back(to_json(model::predict(choice_from_json(choice), profile, setting, samples, singly)));
  return found;
}

Json advice(const Json& request, const model::Profile& profile) {
  const Choice choice = choice_of(request);
  const model::Advice found =
      model::advise(candidates_of(choice, request), profile, setting_of(request), samples_of(request));
  Json json = to_json(found);
  const std::set<std::size_t> simplest(found.simplest.begin(), found.simplest.end());
  std::set<int> depths;
  const bool every = value_of(request, "every", false);
  json["candidates"] = json["predictions"] = Json::array();
  for (std::size_t place = 0; place < found.candidates.size(); ++place) {
    const model::Prediction& one = found.candidates[place].prediction;
    json["candidates"].push_back(model::changes_of(one.choice, choice));
    const bool first_of_depth = depths.insert(one.choice.depth).second;
    if (every || first_of_depth || simplest.count(place)) json["predictions"].push_back({place, to_json(one).dump()});
  }
  return json;
}

/// Maps ranks on any machine, by a rule or custom.
model::RankPlaces places_on_machine(const Json& request) {
  const model::Setting setting = setting_of(request);
  const int cores = value_of(request, "cores_per_socket", 1);
  const int active = setting.active == model::all_cores ? cores : setting.active;
  return model::place_ranks(setting.placement, value_of(request, "ranks", 0), value_of(request, "sockets_per_node", 1),
                            cores, active, setting.custom);
}

model::RankPlaces places_of(const Json& request, const hs_profile* profile) {
  if (!request.contains("choice")) return places_on_machine(request);
  const Choice choice = choice_of(request);
  if (profile) return model::place_choice(choice, c::needed(profile, "profile").profile, setting_of(request)).places;
  model::RankPlaces places{emulated_nodes(choice.ranks, choice.nodes, choice.placement), {}};
  places.node.resize(static_cast<std::size_t>(choice.ranks));
  places.socket = places.node;
  return places;
}

}  // namespace

}  // namespace haloscope::bridge

using namespace haloscope;
using namespace haloscope::bridge;
using bridge::guarded, c::needed;

hs_status hs_open_profile(const char* json, hs_profile** profile) {
  return guarded([&] {
    needed(profile, "profile") = c::keep(new hs_profile{model::profile_from_json(c::text(&needed(json, "json")))});
  });
}

hs_status hs_profile_at_pace(const hs_profile* profile, const char* pace, hs_profile** scaled) {
  return guarded([&] {
    const model::Profile& calibrated = needed(profile, "profile").profile;
    const model::Pace now = model::pace_from_json(c::text(&needed(pace, "pace")));
    needed(scaled, "scaled") = c::keep(new hs_profile{model::at_pace(calibrated, now)});
  });
}

hs_status hs_free_profile(hs_profile* profile) { return c::release(profile, "profile"); }

hs_status hs_map_ranks(const char* request, const hs_profile* profile, int32_t* node, int32_t* socket) {
  return guarded([&] {
    const model::RankPlaces places = places_of(request_of(request, "request"), profile);
    std::copy(places.node.begin(), places.node.end(), &needed(node, "node"));
    std::copy(places.socket.begin(), places.socket.end(), &needed(socket, "socket"));
  });
}

hs_status hs_predict(const char* request, const hs_profile* profile, const char** json) {
  return answered(json,
                  [&] { return predictions(request_of(request, "request"), needed(profile, "profile").profile); });
}

hs_status hs_advise(const char* request, const hs_profile* profile, const char** json) {
  return answered(json, [&] { return advice(request_of(request, "request"), needed(profile, "profile").profile); });
}

hs_status hs_best(const char* question, const hs_profile* profile, const char** json) {
  return answered(json, [&] {
    const model::BestQuestion parsed = model::question_from_json(request_of(question, "question"));
    return to_json(model::find_best(parsed, needed(profile, "profile").profile), parsed.choice);
  });
}
