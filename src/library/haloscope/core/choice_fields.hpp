// The fields of a choice as data: their JSON in both directions, and their help texts. See choice.def.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "haloscope/extend/candidate.hpp"

namespace haloscope {

/// The notation of a field: `integer`, `flag` (true, false; on, off), `text`, `word` (one of `words`), `shape`
/// (numbers joined by x), `cells`, `dimensions` (letters of xyz, or none), `strategy`, `schedule`,
/// `stage-strategies`.
struct ChoiceField {
  std::string name;
  std::string type;
  std::string group;
  std::string meaning;
  std::vector<std::string> words;  ///< the valid words of type `word`
  bool of_schedules;               ///< only schedules that list it read it
  bool is_scalar;                  ///< its JSON is neither a list nor an object
  nlohmann::json (*get)(const Choice&);
  void (*put)(Choice&, const nlohmann::json&);  ///< @throws UsageError for an invalid value
  bool (*matters)(const Choice&);
};

/// Returns all fields but `app` and `set`, in the order of choice.def.
const std::vector<ChoiceField>& choice_fields();

/// Returns the fields that have an effect, with defaults of the app filled in; of `set` only values that differ from
/// defaults.
nlohmann::json to_json(const Choice& choice);
/// Returns the choice of a JSON object. Absent fields have their defaults: the defaults of choice.def, `periodic` of
/// the app, and with a device a strategy for its memory.
/// @throws UsageError for an unknown field (naming the nearest) and an invalid value.
Choice choice_from_json(const nlohmann::json& json);

/// Returns the value of a field from its text on a command line.
/// @throws UsageError for text that is not such a value.
nlohmann::json field_from_text(const ChoiceField& field, const std::string& text);

nlohmann::json to_json(const ParameterValue& value);
/// Returns the value in JSON. @throws UsageError for JSON that is not a value of any parameter.
ParameterValue parameter_from_json(const std::string& name, const nlohmann::json& json);

/// Returns the value of a parameter: JSON as it is, text parsed by the parameter's type.
/// @throws UsageError as parse_value() and parameter_from_json() do.
ParameterValue parameter_value(const std::vector<Parameter>& schema, const std::string& name,
                               const nlohmann::json& json);

}  // namespace haloscope
