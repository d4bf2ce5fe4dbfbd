// What there is, for the C interface: apps, transports, schedules, fields of a choice, names.
#include "haloscope/c/bridge.hpp"
#include "haloscope/core/app_json.hpp"
#include "haloscope/core/backend_names.hpp"
#include "haloscope/core/bounds.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/schedule.hpp"
#include "haloscope/transport_traits.hpp"

namespace haloscope::c {

namespace {

using Json = nlohmann::json;

template <class List, class F>
Json array_of(const List& list, F json_of) {
  Json array = Json::array();
  for (const auto& one : list) array.push_back(json_of(one));
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

Json list_of(const std::string& kind) {
  const auto summarised = [](const auto& one) { return Json{{"name", one.name}, {"summary", one.summary}}; };
  if (kind == "apps") return array_of(apps(), [](const App* app) { return describe(*app); });
  if (kind == "transports") return array_of(transport_traits(), transport_json);
  if (kind == "schedules") return array_of(schedules(), schedule_json);
  if (kind == "reduction-schemes") return array_of(reduction_schemes(), summarised);
  if (kind == "fields") return array_of(choice_fields(), field_json);
  if (kind == "strategies") return strategy_names();
  if (kind == "device-strategies") return device_strategy_names();
  if (kind == "rules") return process_grid_rules();
  if (kind == "backends") return backend_names();
  if (kind == "placements") return model::placement_rules();
  if (kind == "terms") return model::term_names();
  if (kind == "bounds")
    return array_of(bounds(), [](const Bound& b) {
      return Json{{"name", b.name}, {"least", b.least}, {"most", b.most}};
    });
  throw UsageError(unknown_name("kind of list", kind,
                                {"apps", "transports", "schedules", "reduction-schemes", "fields", "strategies",
                                 "device-strategies", "rules", "backends", "placements", "terms", "bounds"}));
}

/// Parameters as values, or as texts that a user wrote.
Parameters::Given given_parameters(const App& app, const Json& set) {
  if (!set.is_object()) throw UsageError("parameters are a JSON object of names and values, not " + set.dump());
  Parameters::Given given;
  const auto schema = parameters_of(app);
  for (const auto& [name, value] : set.items()) given[name] = given_value(schema, name, value);
  return given;
}

Json strategy_json(const Strategy& s) {
  return {{"name", to_string(s)},
          {"transport", s.transport},
          {"between", s.between},
          {"pattern", s.pattern == Pattern::ordered ? "ordered" : "direct"},
          {"device", moves_device_memory(s)},
          {"shared_fields", needs_shared_fields(s)},
          {"probes", probes_of(s)}};
}

}  // namespace

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_list(const char* kind, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    result = list_of(text(kind)).dump();
    needed(json, "json") = result.c_str();
  });
}

hs_status hs_app_describe(const char* name, const char* set, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    const App& app = find_app(text(name));
    result = describe(app, set ? given_parameters(app, parsed(set, "set")) : Parameters::Given{}).dump();
    needed(json, "json") = result.c_str();
  });
}

hs_status hs_app_declare(const char* json) {
  return guarded([&] { declare_app(described_app(parsed(json, "json"))); });
}

hs_status hs_strategy_describe(const char* given, const char** json) {
  return guarded([&] {
    thread_local std::string result;
    result = strategy_json(Strategy(text(given))).dump();
    needed(json, "json") = result.c_str();
  });
}
