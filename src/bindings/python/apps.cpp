// Apps and choices for the bridge: all values that a choice can have, and the parts of one.
#include "bindings/python/bridge.h"
#include "bindings/python/request.hpp"
#include "haloscope/core/app_json.hpp"
#include "haloscope/core/backend_names.hpp"
#include "haloscope/core/bounds.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/stores.hpp"
#include "haloscope/extend/transport_traits.hpp"
#include "haloscope/model/json.hpp"

namespace haloscope::bridge {

namespace {

template <class List, class F>
Json array_of(const List& list, F json_of_one) {
  Json array = Json::array();
  for (const auto& one : list) array.push_back(json_of_one(one));
  return array;
}

Json transport_json(const TransportTraits* t) {
  return {{"name", t->name},
          {"summary", t->summary},
          {"colour", t->colour},
          {"options", option_texts(*t)},
          {"device", t->device},
          {"shared_fields", t->shared_fields},
          {"inside_nodes", t->inside_nodes},
          {"probes", {{"always", t->needs.always}, {"with", t->needs.with}, {"without", t->needs.without}}}};
}

Json schedule_json(const Schedule* s) {
  return {{"name", s->name},           {"summary", s->summary},   {"colour", s->colour},
          {"options", s->options},     {"plain", s->plain},       {"on_host", s->on_host},
          {"on_device", s->on_device}, {"boxed", s->boxed},       {"deep", s->deep},
          {"blocked", s->blocked},     {"in_place", s->in_place}, {"computes_on_host", s->computes_on_host}};
}

Json field_json(const ChoiceField& field) {
  static const Choice defaults;
  return {{"name", field.name},       {"type", field.type},   {"group", field.group},
          {"meaning", field.meaning}, {"words", field.words}, {"default", field.get(defaults)}};
}

Json strategy_json(const Strategy& s) {
  return {
      {"name", to_string(s)},          {"transport", s.transport},         {"between", s.between},
      {"pattern", to_word(s.pattern)}, {"device", moves_device_memory(s)}, {"shared_fields", needs_shared_fields(s)},
      {"probes", probes_of(s)}};
}

Json operations() {
  Json names = Json::array();
  for (int kind = 0; kind < op_kinds; ++kind) names.push_back(to_string(static_cast<OpKind>(kind)));
  return names;
}

struct Catalogue {
  const char* name;
  Json (*list)();
};

constexpr auto summarised = [](const auto& one) { return Json{{"name", one.name}, {"summary", one.summary}}; };
constexpr auto bound_json = [](const Bound& b) { return Json{{"name", b.name}, {"least", b.least}, {"most", b.most}}; };

const Catalogue catalogues[] = {
    {"apps", [] { return array_of(apps(), [](const App* app) { return describe(*app); }); }},
    {"transports", [] { return array_of(transport_traits(), transport_json); }},
    {"schedules", [] { return array_of(schedules(), schedule_json); }},
    {"reduction-schemes", [] { return array_of(reduction_schemes(), summarised); }},
    {"fields", [] { return array_of(choice_fields(), field_json); }},
    {"strategies", [] { return Json(strategy_names()); }},
    {"device-strategies", [] { return Json(device_strategy_names()); }},
    {"rules", [] { return Json(process_grid_rules()); }},
    {"backends", [] { return Json(backend_names()); }},
    {"placements", [] { return Json(model::placement_rules()); }},
    {"terms", [] { return Json(model::term_names()); }},
    {"operations", operations},
    {"bounds", [] { return array_of(bounds(), bound_json); }},
    {"constants",
     [] {
       return Json{{"stream_from_bytes", stream_from_bytes}};
     }},
};

Json part(Choice choice, const std::string& name, int stage) {
  if (name == "fields") return to_json(choice);
  if (name == "step") return to_json(step_of(find_app(choice.app), problem_of(choice)));
  if (name == "sweeps") return model::sweep_names(Candidate(choice));
  if (name != "spec" && name != "options")
    throw UsageError(unknown_name("part of a choice", name, {"fields", "step", "sweeps", "spec", "options"}));
  choice.reorder = Reorder::none;  // takes time to find, and has no effect here
  const Candidate candidate = legal_candidate(choice);
  stage_of(candidate.step, stage);
  return name == "spec" ? json_of(exchange_spec(candidate, stage)) : json_of(schedule_options(candidate, stage));
}

/// Returns the reason why a choice cannot run; "" when it can.
std::string reason_of(const Choice& choice) {
  try {
    return illegal(choice);
  } catch (const UsageError& error) {
    return error.what();
  }
}

/// @param of_space  the choice is checked without fields that have no effect on it.
Json point(const Json& fields, bool of_space) {
  try {
    const Choice choice = choice_from_json(fields);
    return {{"choice", to_json(choice)}, {"reason", reason_of(of_space ? normal(choice) : choice)}};
  } catch (const UsageError& error) {  // no such choice exists
    return {{"choice", nullptr}, {"reason", error.what()}};
  }
}

struct Axis {
  std::string field;
  std::vector<Json> values;
};

std::vector<Axis> axes_of(const Json& space) {
  std::vector<Axis> axes;
  if (!space.contains("axes")) return axes;
  for (const Json& pair : space.at("axes")) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_array())
      refuse(pair, "axes", "pairs of a field and a list of its values");
    axes.push_back({pair[0].get<std::string>(), pair[1].get<std::vector<Json>>()});
  }
  return axes;
}

/// Adds the points of the axes from number `first` on.
void add_points(Json& fields, const std::vector<Axis>& axes, std::size_t first, Json& points) {
  if (first == axes.size()) return points.push_back(point(fields, !axes.empty()));
  for (const Json& value : axes[first].values) {
    fields[axes[first].field] = value;
    add_points(fields, axes, first + 1, points);
  }
}

Json expand(const Json& space) {
  Json found = Json::array();
  if (space.contains("depths")) {
    const Choice choice = choice_of(space);
    candidates_of(choice, space)([&](const Choice& candidate) {
      found.push_back({{"changes", model::changes_of(candidate, choice)}, {"reason", reason_of(candidate)}});
    });
    return found;
  }
  Json fields = part_of(space, "choice");
  add_points(fields, axes_of(space), 0, found);
  return found;
}

}  // namespace

}  // namespace haloscope::bridge

using namespace haloscope;
using namespace haloscope::bridge;
using bridge::guarded, c::needed;

hs_status hs_describe(const char* kind, const char** json) {
  return answered(json, [&] { return find_named("kind of list", catalogues, c::text(kind)).list(); });
}

hs_status hs_parse_strategy(const char* text, const char** json) {
  return answered(json, [&] { return strategy_json(Strategy(c::text(text))); });
}

hs_status hs_declare_app(const char* app) {
  return guarded([&] { declare_app(described_app(request_of(app, "app"))); });
}

hs_status hs_examine(const char* choice, const char* part, int32_t stage, const char** json) {
  return answered(json,
                  [&] { return bridge::part(choice_from_json(request_of(choice, "choice")), c::text(part), stage); });
}

hs_status hs_expand(const char* space, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    answer(result, expand(request_of(space, "space")), json);
  });
}
