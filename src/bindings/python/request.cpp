#include "bindings/python/request.hpp"

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/parsed_json.hpp"
#include "haloscope/model/json.hpp"

namespace haloscope::bridge {

Json request_of(const char* text, const char* name) {
  const std::string source = c::text(text);
  Json json = parsed_json(source, std::string("argument '") + name + "', " + shown(source) + ",");
  if (!json.is_object()) refuse(json, name, "an object");
  return json;
}

const Json& part_of(const Json& request, const char* name) {
  if (!request.contains(name)) throw UsageError(std::string("the request has no '") + name + "'; add one");
  return request.at(name);
}

Choice choice_of(const Json& request) { return choice_from_json(part_of(request, "choice")); }

Candidate legal_candidate(const Choice& choice) {
  if (const std::string reason = illegal(choice); !reason.empty()) throw UsageError(reason);
  return Candidate(choice);
}

Layout layout_of(const Json& request) {
  const Json& json = part_of(request, "layout");
  GridSpec grid;
  read(part_of(json, "grid"), "grid", grid);
  const Layout layout(grid, value_of(json, "ranks", ProcessGrid{1, 1, 1}));
  const auto places = value_of(json, "places", std::vector<int>());
  return places.empty() ? layout : layout.renumbered(places);
}

ExchangeSpec spec_of(const Json& request) {
  ExchangeSpec spec;
  read(part_of(request, "spec"), "spec", spec);
  return spec;
}

ScheduleOptions options_of(const Json& request, const ScheduleOptions& defaults) {
  const ScheduleOptions options = value_of(request, "options", defaults);
  if (options.depth < 1 || options.depth > bound.depth.most || options.steps < 1 || options.steps > options.depth)
    throw UsageError("a program of " + std::to_string(options.steps) + " steps at depth " +
                     std::to_string(options.depth) + "; use a depth of 1 to " +
                     std::to_string(static_cast<int>(bound.depth.most)) + " and 1 to depth steps");
  c::enumerator<int>(options.slots - 1, 2, "number of slots less 1");
  return options;
}

model::Setting setting_of(const Json& request) {
  model::Setting setting = value_of(request, "setting", model::Setting{});
  if (setting.reductions < 0 || setting.repeats < 0)
    throw UsageError("a setting has a negative number of reductions or repeats");
  return setting;
}

namespace {

std::vector<Choice> changed_choices(const Choice& choice, const Json& list, const char* name) {
  if (!list.is_array()) refuse(list, name, "a list of changes");
  std::vector<Choice> found;
  for (const Json& changes : list) found.push_back(model::changed(choice, changes));
  return found;
}

}  // namespace

model::Candidates candidates_of(const Choice& choice, const Json& request) {
  if (request.contains("among")) return model::candidates_of(changed_choices(choice, request.at("among"), "among"));
  std::vector<Choice> arranged{choice};
  if (request.contains("arrangements")) arranged = changed_choices(choice, request.at("arrangements"), "arrangements");
  return [arranged, depths = value_of(request, "depths", model::usual_depths())](const auto& visit) {
    for (const Choice& one : arranged) model::candidates_of(one, depths)(visit);
  };
}

const Stage& stage_of(const Step& step, int stage) {
  return step.stages[c::enumerator<std::size_t>(stage, static_cast<int>(step.stages.size()), "stage")];
}

void answer(std::string& result, const Json& found, const char** json) {
  result = found.dump();
  c::needed(json, "json") = result.c_str();
}

}  // namespace haloscope::bridge
