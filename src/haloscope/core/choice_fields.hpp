// The fields of a choice as data: their JSON in both directions, and their help texts. See choice.def.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "haloscope/choice.hpp"

namespace haloscope {

/// How a field is written: `integer`, `flag` (true, false; on, off), `text`, `word` (one of `words`), `shape` (numbers
/// joined by x), `cells`, `dimensions` (letters of xyz, or none), `strategy`, `schedule`, `stage-strategies`.
struct ChoiceField {
  std::string name;
  std::string type;
  std::string group;
  std::string meaning;
  std::vector<std::string> words;  ///< the valid ones of type `word`
  bool of_schedules;               ///< only some schedules look at it: those that list it
  bool is_scalar;                  ///< its JSON is neither a list nor an object
  nlohmann::json (*get)(const Choice&);
  void (*put)(Choice&, const nlohmann::json&);  ///< @throws UsageError for a value that cannot be
  bool (*matters)(const Choice&);
};

/// All fields but `app` and `set`, in the order of choice.def.
const std::vector<ChoiceField>& choice_fields();

/// The fields that have an effect, with defaults of the app filled in; `set` only what is not its default.
nlohmann::json to_json(const Choice& choice);
/// Fields that are absent have their defaults: those of choice.def, `periodic` of the app, and with a device a strategy
/// for its memory.
/// @throws UsageError for an unknown field (naming the nearest) and a value that cannot be.
Choice choice_from_json(const nlohmann::json& json);

/// The value of a field from its text on a command line.
/// @throws UsageError for text that is no such value.
nlohmann::json field_from_text(const ChoiceField& field, const std::string& text);

nlohmann::json to_json(const ParameterValue& value);
/// @throws UsageError for JSON that is no value of any parameter.
ParameterValue parameter_from_json(const std::string& name, const nlohmann::json& json);

/// The value of a parameter: JSON as it is, text read as the parameter's type.
/// @throws UsageError as parse_value() and parameter_from_json() do.
ParameterValue given_value(const std::vector<Parameter>& schema, const std::string& name, const nlohmann::json& json);

}  // namespace haloscope
