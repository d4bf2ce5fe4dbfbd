#include "haloscope/model/json.hpp"

#include <map>

#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope::model {

namespace {

nlohmann::json named(const Terms& terms) {
  nlohmann::json json;
  for (std::size_t term = 0; term < terms.size(); ++term) json[to_string(static_cast<Term>(term))] = terms[term];
  return json;
}

}  // namespace

nlohmann::json to_json(const PaceRatios& ratios) {
  nlohmann::json json = nlohmann::json::object();
  for (std::size_t kind = 0; kind < ratios.size(); ++kind) json[to_string(static_cast<PaceKind>(kind))] = ratios[kind];
  return json;
}

nlohmann::json to_json(const Prediction& p) {
  return {{"profile", p.profile},
          {"pace", to_json(p.pace)},
          {"time_s", p.time_s},
          {"interval", p.interval ? nlohmann::json(*p.interval) : nlohmann::json()},
          {"exchange_interval", p.exchange_interval ? nlohmann::json(*p.exchange_interval) : nlohmann::json()},
          {"interval_from", p.interval_from},
          {"regime", regime_of(p, false)},
          {"exchange_regime", regime_of(p, true)},
          {"terms", named(p.terms)},
          {"busy", named(p.busy)},
          {"worst_rank", p.worst_rank},
          {"worst_node", p.worst_node},
          {"worst_node_bytes", p.worst_node_bytes},
          {"nodes", p.nodes},
          {"classes", p.classes},
          {"messages", p.messages},
          {"bytes", p.bytes},
          {"message_bytes", p.message_bytes},
          {"bound", p.bound},
          {"reason", reason_of(p)},
          {"outside", p.outside},
          {"notes", p.notes}};
}

nlohmann::json changes_of(const Choice& choice, const Choice& from) {
  nlohmann::json changes = nlohmann::json::object();
  for (const ChoiceField& field : choice_fields())
    if (nlohmann::json value = field.get(choice); value != field.get(from)) changes[field.name] = std::move(value);
  return changes;
}

Choice changed(Choice choice, const nlohmann::json& changes) {
  if (!changes.is_object())
    throw UsageError("changes of a choice are a JSON object, not " + haloscope::shown(changes.dump()));
  for (const ChoiceField& field : choice_fields())
    if (changes.contains(field.name)) field.put(choice, changes.at(field.name));
  return choice;
}

nlohmann::json to_json(const Advice& advice) {
  std::vector<double> times;
  std::vector<int> groups;
  std::map<int, std::size_t> first_of_depth;
  for (const Ranked& ranked : advice.candidates) {
    first_of_depth.try_emplace(ranked.prediction.choice.depth, times.size());
    times.push_back(ranked.prediction.time_s);
    groups.push_back(ranked.group);
  }
  return {{"time_s", times},
          {"group", groups},
          {"simplest", advice.simplest},
          {"first_of_depth", first_of_depth},
          {"changes", advice.changes},
          {"refused", advice.refused}};
}

nlohmann::json to_json(const BestAnswer& answer, const Choice& choice) {
  nlohmann::json json = to_json(answer.prediction);
  json["changes"] = changes_of(answer.prediction.choice, choice);
  json["equals"] = nlohmann::json::array();
  for (const Choice& other : answer.equals) json["equals"].push_back(changes_of(other, choice));
  json["notes"] = answer.notes;
  return json;
}

BestQuestion question_from_json(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("choice")) throw UsageError("a question is a JSON object with a choice");
  const auto is_set = [&](const char* name) { return json.contains(name) && !json.at(name).is_null(); };
  BestQuestion q;
  q.choice = choice_from_json(json.at("choice"));
  try {
    q.assumed_app = json.value("assumed_app", false);
    if (is_set("depths")) q.depths = json.at("depths").get<std::vector<int>>();
    if (is_set("seconds_per_cell")) q.seconds_per_cell = json.at("seconds_per_cell").get<double>();
    q.fused = json.value("fused", false);
    if (is_set("halo")) q.halo = json.at("halo").get<int>();
    q.shared_memory = json.value("shared_memory", true);
    q.samples = json.value("samples", usual_samples);
    q.cpu = json.value("cpu", "");
    q.mpi_library = json.value("mpi_library", "");
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("the question has a value of the wrong type: ") + error.what());
  }
  if (!is_set("among")) return q;
  q.among.emplace();
  for (const nlohmann::json& changes : json.at("among")) q.among->push_back(changed(q.choice, changes));
  return q;
}

}  // namespace haloscope::model
