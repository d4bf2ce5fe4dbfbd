// The model of the C interface: profiles, predictions, places of ranks.
#include <algorithm>

#include "haloscope/c/bridge.hpp"
#include "haloscope/model/json.hpp"

namespace haloscope::c {

model::Setting from_c(const hs_setting* given) {
  hs_setting defaults;
  hs_setting_init(&defaults);
  const hs_setting s = versioned(given, defaults, "hs_setting");
  if (s.reductions < 0 || s.repeats < 0 || s.place_count < 0)
    throw UsageError("a setting has a negative number of reductions, repeats or places");
  model::Setting setting{s.placement ? s.placement : "fill", s.active, {}, s.reductions, s.repeats};
  for (int32_t i = 0; i < s.place_count; ++i) {
    const int32_t* place = &needed(s.places, "places") + 2 * i;
    setting.custom.push_back({place[0], place[1]});
  }
  return setting;
}

namespace {

void hand_out(const model::RankPlaces& places, int32_t* node, int32_t* socket) {
  std::copy(places.node.begin(), places.node.end(), &needed(node, "node"));
  std::copy(places.socket.begin(), places.socket.end(), &needed(socket, "socket"));
}

}  // namespace

void answer(std::string& result, const nlohmann::json& found, const char** json) {
  result = found.dump();
  needed(json, "json") = result.c_str();
}

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_profile_create(const char* json, hs_profile** profile) {
  return guarded([&] {
    needed(profile, "profile") = keep(new hs_profile{model::profile_from_json(text(&needed(json, "json")))});
  });
}

hs_status hs_profile_at_pace(const hs_profile* profile, const char* pace, hs_profile** scaled) {
  return guarded([&] {
    const model::Pace now = model::pace_from_json(text(&needed(pace, "pace")));
    needed(scaled, "scaled") = keep(new hs_profile{model::at_pace(needed(profile, "profile").profile, now)});
  });
}

hs_status hs_profile_free(hs_profile* profile) { return release(profile, "profile"); }

void hs_setting_init(hs_setting* setting) {
  if (setting) *setting = {sizeof(hs_setting), "fill", nullptr, 0, model::all_cores, 0, 1};
}

hs_status hs_predict(const hs_choice* choice, const hs_profile* profile, const hs_setting* setting, int32_t samples,
                     int32_t singly, const char** json) {
  return guarded([&] {
    if (samples < 0) throw UsageError(std::to_string(samples) + " samples are not possible; use 0 or more");
    thread_local std::string result;
    answer(result,
           to_json(model::predict(needed(choice, "choice").choice, needed(profile, "profile").profile, from_c(setting),
                                  samples, singly != 0)),
           json);
  });
}

hs_status hs_choice_places(const hs_choice* choice, const hs_profile* profile, const hs_setting* setting, int32_t* node,
                           int32_t* socket) {
  return guarded([&] {
    hand_out(model::place_choice(needed(choice, "choice").choice, needed(profile, "profile").profile, from_c(setting))
                 .places,
             node, socket);
  });
}

hs_status hs_place_ranks(int32_t ranks, int32_t sockets_per_node, int32_t cores_per_socket, const hs_setting* setting,
                         int32_t* node, int32_t* socket) {
  return guarded([&] {
    const model::Setting s = from_c(setting);
    const int active = s.active == model::all_cores ? cores_per_socket : s.active;
    hand_out(model::place_ranks(s.placement, ranks, sockets_per_node, cores_per_socket, active, s.custom), node,
             socket);
  });
}

hs_status hs_sweep_names(const hs_choice* choice, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    answer(result, model::sweep_names(Candidate(needed(choice, "choice").choice)), json);
  });
}
