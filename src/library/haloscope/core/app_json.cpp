#include "haloscope/core/app_json.hpp"

#include <algorithm>
#include <limits>

#include "haloscope/core/choice_fields.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

Json accesses(const std::vector<Access>& list) {
  Json json = Json::array();
  for (const Access& access : list) {
    json.push_back({{"quantity", access.quantity}, {"layers", access.layers}});
    if (access.of) json.back()["of"] = to_word(*access.of);
  }
  return json;
}

std::vector<Access> accesses_from(const Json& json) {
  std::vector<Access> list;
  for (const Json& one : json) {
    list.push_back({one.at("quantity").get<int>(), one.at("layers").get<int>()});
    if (one.contains("of")) list.back().of = from_word<Centring>(one["of"].get<std::string>());
  }
  return list;
}

Json stage_json(const Stage& stage) {
  Json json{{"name", stage.name},
            {"sweeps", Json::array()},
            {"reductions", Json::array()},
            {"repeats", stage.repeats},
            {"least", stage.least}};
  for (const SweepSpec& sweep : stage.sweeps)
    json["sweeps"].push_back({{"name", sweep.name},
                              {"reads", accesses(sweep.reads)},
                              {"writes", sweep.writes},
                              {"box_stencil", sweep.box_stencil},
                              {"in_place", sweep.in_place},
                              {"flops_per_point", sweep.flops_per_point}});
  for (const Reduction& r : stage.reductions)
    json["reductions"].push_back({{"name", r.name},
                                  {"op", to_word(r.op)},
                                  {"numbers", r.numbers},
                                  {"mode", to_word(r.mode)},
                                  {"sweep", r.sweep},
                                  {"collectives", r.collectives},
                                  {"by", to_word(r.by)},
                                  {"type", to_word(r.type)},
                                  {"until", r.until},
                                  {"last_only", r.last_only},
                                  {"scheme", r.scheme}});
  if (stage.exchange) json["exchange"] = accesses(*stage.exchange);
  return json;
}

void no_code(const SweepArgs&) { throw Error(Exit::failed, "a described app has no code to run"); }

Stage stage_from(const Json& json) {
  Stage stage;
  stage.name = json.at("name").get<std::string>();
  stage.repeats = json.at("repeats").get<int>();
  stage.least = json.value("least", std::int64_t{1});
  for (const Json& s : json.at("sweeps"))
    stage.sweeps.push_back({.name = s.at("name").get<std::string>(),
                            .reads = accesses_from(s.at("reads")),
                            .writes = s.at("writes").get<std::vector<int>>(),
                            .box_stencil = s.at("box_stencil").get<bool>(),
                            .in_place = s.at("in_place").get<bool>(),
                            .flops_per_point = s.at("flops_per_point").get<double>(),
                            .run = no_code});
  for (const Json& r : json.at("reductions"))
    stage.reductions.push_back({.name = r.at("name").get<std::string>(),
                                .op = from_word<ReduceOp>(r.at("op").get<std::string>()),
                                .numbers = r.at("numbers").get<int>(),
                                .mode = from_word<ReduceMode>(r.at("mode").get<std::string>()),
                                .sweep = r.at("sweep").get<int>(),
                                .collectives = r.value("collectives", 1),
                                .by = from_word<ReduceBy>(r.value("by", std::string("reduce"))),
                                .type = from_word<NumberType>(r.value("type", std::string("real"))),
                                .until = r.value("until", std::string()),
                                .last_only = r.at("last_only").get<bool>(),
                                .scheme = r.at("scheme").get<std::string>()});
  if (json.contains("exchange")) stage.exchange = accesses_from(json["exchange"]);
  return stage;
}

Json parameter_json(const Parameter& p) {
  Json json{{"name", p.name}, {"value", to_json(p.value)}, {"help", p.help}, {"words", p.words}};
  if (p.least > -std::numeric_limits<double>::infinity()) json["least"] = p.least;
  if (p.most < std::numeric_limits<double>::infinity()) json["most"] = p.most;
  return json;
}

Parameter parameter_from(const Json& json) {
  Parameter p;
  p.name = json.at("name").get<std::string>();
  p.value = parameter_from_json(p.name, json.at("value"));
  p.help = json.at("help").get<std::string>();
  p.words = json.at("words").get<std::vector<std::string>>();
  if (json.contains("least")) p.least = json["least"].get<double>();
  if (json.contains("most")) p.most = json["most"].get<double>();
  return p;
}

std::array<Edges, 3> edges_from(const Json& quantity) {
  std::array<Edges, 3> edges{};
  const auto words = quantity.value("edges", std::vector<std::array<std::string, 2>>{});
  for (std::size_t d = 0; d < std::min(words.size(), edges.size()); ++d)
    edges[d] = {from_word<Edge>(words[d][0]), from_word<Edge>(words[d][1])};
  return edges;
}

std::vector<std::array<std::string, 2>> words_of(const std::array<Edges, 3>& edges) {
  std::vector<std::array<std::string, 2>> words;
  for (const Edges& of : edges) words.push_back({to_word(of.low), to_word(of.high)});
  return words;
}

Step step_from(const Json& json) {
  Step step;
  for (const Json& q : json.at("quantities"))
    step.quantities.push_back({.name = q.at("name").get<std::string>(),
                               .element_bytes = q.at("element_bytes").get<int>(),
                               .type = from_word<ScalarType>(q.at("type").get<std::string>()),
                               .centring = from_word<Centring>(q.at("centring").get<std::string>()),
                               .slots = q.at("slots").get<int>(),
                               .edges = edges_from(q)});
  for (const Json& stage : json.at("stages")) step.stages.push_back(stage_from(stage));
  return step;
}

}  // namespace

Json to_json(const Step& step) {
  Json json{{"quantities", Json::array()}, {"stages", Json::array()}};
  for (const Quantity& q : step.quantities)
    json["quantities"].push_back({{"name", q.name},
                                  {"element_bytes", q.element_bytes},
                                  {"type", to_word(q.type)},
                                  {"centring", to_word(q.centring)},
                                  {"slots", q.slots},
                                  {"edges", words_of(q.edges)}});
  for (const Stage& stage : step.stages) json["stages"].push_back(stage_json(stage));
  return json;
}

Json describe(const App& app, const Parameters::Given& values) {
  Json json{{"name", app.name},
            {"summary", app.summary},
            {"dims", app.dims},
            {"forms", app.forms},
            {"reals", app.reals},
            {"process_grid", app.process_grid},
            {"periodic", app.periodic},
            {"initials", app.initials},
            {"starts_random", app.starts_random},
            {"fused_forms", app.fused_forms},
            {"device_levels", app.device_levels},
            {"own_legality", app.illegal != nullptr},
            {"parameters", Json::array()}};
  for (const Parameter& p : parameters_of(app)) json["parameters"].push_back(parameter_json(p));
  for (const std::string& form : app.forms) {
    Problem problem{{app.dims, {1, 1, 1}, {}}, form, from_word<Real>(app.reals.front()), {}};
    problem.parameters = Parameters(parameters_of(app), values, app.name);
    Step step = app.step ? app.step(problem) : Step{app.quantities, app.stages};
    json["steps"][form] = to_json(resolved(step, app.dims, app.name));
    for (std::size_t q = 0; q < step.quantities.size(); ++q)  // 0: the size of the choice's scalar type
      json["steps"][form]["quantities"][q]["element_bytes"] = step.quantities[q].element_bytes;
  }
  return json;
}

Step described_step(const Json& json) try { return step_from(json); } catch (const Json::exception& error) {
  throw UsageError(std::string("this describes no step: ") + error.what());
}

App described_app(const Json& json) try {
  App app;
  app.name = json.at("name").get<std::string>();
  app.summary = json.at("summary").get<std::string>();
  app.dims = json.at("dims").get<int>();
  app.forms = json.at("forms").get<std::vector<std::string>>();
  app.reals = json.at("reals").get<std::vector<std::string>>();
  app.process_grid = json.at("process_grid").get<std::string>();
  app.periodic = json.at("periodic").get<bool>();
  app.initials = json.at("initials").get<std::vector<std::string>>();
  app.starts_random = json.at("starts_random").get<bool>();
  app.fused_forms = json.at("fused_forms").get<std::vector<std::string>>();
  app.device_levels = json.at("device_levels").get<int>();
  const App nameless;
  const std::vector<Parameter> common = parameters_of(nameless);
  for (const Json& p : json.at("parameters")) {
    const Parameter parameter = parameter_from(p);
    const auto same = [&](const Parameter& other) { return other.name == parameter.name; };
    if (std::none_of(common.begin(), common.end(), same)) app.parameters.push_back(parameter);
  }
  std::map<std::string, Step> steps;
  for (const std::string& form : app.forms) steps[form] = step_from(json.at("steps").at(form));
  app.step = [steps](const Problem& problem) { return steps.at(problem.form); };
  app.plain = no_code;
  app.finished = [](const Problem&, int, std::span<const double>, std::span<const double>) { return true; };
  return app;
} catch (const Json::exception& error) {
  throw UsageError(std::string("this does not describe an app: ") + error.what() +
                   "; pass the output of a program with --describe");
}

}  // namespace haloscope
