#include "haloscope/core/choice_fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "haloscope/core/bounds.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& field, const Json& value, const std::string& wanted) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  throw UsageError("--" + field + " '" + shown(text) + "' is not possible; give " + wanted);
}

/// Returns the largest whole number that a field may have.
std::int64_t max_of(const std::string& field) {
  const auto found = std::find_if(bounds().begin(), bounds().end(), [&](const Bound& b) { return field == b.name; });
  return static_cast<std::int64_t>(found == bounds().end() ? bound.ranks.most : found->most);
}

// One Kind per C++ type of a field: its notation, and its JSON.

template <class T>
struct Kind {  // enumerations
  static constexpr const char* type = "word";
  static std::vector<std::string> words() { return Words<T>::all(); }
  static Json get(const T& value) { return to_word(value); }
  static void put(const std::string& field, T& value, const Json& json) {
    if (!json.is_string()) refuse(field, json, "one of " + join(words(), ", "));
    value = from_word<T>(json.get<std::string>());
  }
};

struct NoWords {
  static std::vector<std::string> words() { return {}; }
};

template <>
struct Kind<int> : NoWords {
  static constexpr const char* type = "integer";
  static Json get(int value) { return value; }
  static void put(const std::string& field, int& value, const Json& json) {
    const std::int64_t max = max_of(field);
    if (!json.is_number_integer() || std::abs(json.get<double>()) > static_cast<double>(max))
      refuse(field, json, "a whole number up to " + std::to_string(max));
    value = json.get<int>();
  }
};

template <>
struct Kind<bool> : NoWords {
  static constexpr const char* type = "flag";
  static Json get(bool value) { return value; }
  static void put(const std::string& field, bool& value, const Json& json) {
    if (!json.is_boolean()) refuse(field, json, "on or off");
    value = json.get<bool>();
  }
};

template <>
struct Kind<std::string> : NoWords {
  static constexpr const char* type = "text";
  static Json get(const std::string& value) { return value; }
  static void put(const std::string& field, std::string& value, const Json& json) {
    if (field == "process_grid" && json.is_array()) {  // as in records
      std::vector<std::string> words;
      for (const Json& n : json) words.push_back(n.dump());
      value = join(words, "x");
      return;
    }
    if (!json.is_string()) refuse(field, json, "text");
    value = json.get<std::string>();
  }
};

template <>
struct Kind<ScheduleName> : NoWords {
  static constexpr const char* type = "schedule";
  static Json get(const ScheduleName& value) { return value->name; }
  static void put(const std::string& field, ScheduleName& value, const Json& json) {
    if (!json.is_string()) refuse(field, json, "the name of a schedule");
    value = json.get<std::string>();
  }
};

template <>
struct Kind<Strategy> : NoWords {
  static constexpr const char* type = "strategy";
  static Json get(const Strategy& value) { return to_string(value); }
  static void put(const std::string& field, Strategy& value, const Json& json) {
    if (!json.is_string()) refuse(field, json, "a strategy such as ordered/p2p");
    value = json.get<std::string>();
  }
};

template <>
struct Kind<StageStrategies> : NoWords {
  static constexpr const char* type = "stage-strategies";
  static Json get(const StageStrategies& value) {
    Json json = Json::object();
    for (const auto& [stage, strategy] : value) json[stage] = to_string(strategy);
    return json;
  }
  static void put(const std::string& field, StageStrategies& value, const Json& json) {
    if (!json.is_object()) refuse(field, json, "STAGE=STRATEGY;STAGE=STRATEGY;...");
    value.clear();
    for (const auto& [stage, strategy] : json.items()) Kind<Strategy>::put(field, value[stage], strategy);
  }
};

template <>
struct Kind<BlockShape> : NoWords {
  static constexpr const char* type = "shape";
  static Json get(const BlockShape& value) {
    std::vector<std::string> words;
    for (int n : value)
      if (n > 0) words.push_back(std::to_string(n));
    return join(words, "x");
  }
  static void put(const std::string& field, BlockShape& value, const Json& json) {
    value = {};
    const auto words = json.is_string() ? split(json.get<std::string>(), 'x') : std::vector<std::string>{"?"};
    if (words.size() > 3) refuse(field, json, "at most three numbers, such as 32x8x64");
    for (std::size_t i = 0; i < words.size(); ++i) {
      const char* end = words[i].data() + words[i].size();
      const auto [last, fault] = std::from_chars(words[i].data(), end, value[i]);
      if (fault != std::errc{} || last != end || value[i] < 1 || value[i] > 1 << 20)
        refuse(field, json, "numbers above 0, such as 32x8x64");
    }
  }
};

Json get_cells(const Choice& c) {
  Json list = Json::array();
  for (int d = 0; d < c.grid.dims; ++d) list.push_back(c.grid.cells[d]);
  return list;
}

void put_cells(Choice& c, const Json& json) {
  if (!json.is_array() || json.empty() || json.size() > 3) refuse("cells", json, "one to three numbers, as 64x64x64");
  c.grid.dims = static_cast<int>(json.size());
  c.grid.cells = {1, 1, 1};
  for (std::size_t d = 0; d < json.size(); ++d) {
    if (!json[d].is_number_integer() || std::abs(json[d].get<double>()) > bound.cells.most)
      refuse("cells", json, "whole numbers, as 64x64x64");
    c.grid.cells[d] = json[d].get<std::int64_t>();
  }
}

Json get_periodic(const Choice& c) {
  Json list = Json::array();
  for (int d = 0; d < c.grid.dims; ++d) list.push_back(c.grid.periodic[d]);
  return list;
}

/// Reads flags, or letters as users write them.
void put_periodic(Choice& c, const Json& json) {
  c.grid.periodic = {};
  const std::string wanted = "the letters of the dimensions that wrap around (xyz, xy, ...), all, or none";
  if (json.is_array()) {
    for (std::size_t d = 0; d < json.size() && d < 3; ++d) {
      if (!json[d].is_boolean()) refuse("periodic", json, wanted);
      c.grid.periodic[d] = json[d].get<bool>();
    }
    return;
  }
  const std::string text = json.is_string() ? json.get<std::string>() : "?";
  if (text != "all" && text != "none" && text.find_first_not_of("xyz") != std::string::npos)
    refuse("periodic", json, wanted);
  for (int d = 0; d < c.grid.dims; ++d)
    c.grid.periodic[d] = text == "all" || (text != "none" && text.find("xyz"[d]) != std::string::npos);
}

std::vector<ChoiceField> make_fields() {
  std::vector<ChoiceField> fields;
#define CHOICE_FIELD(type_, name_, value_, group_, matters_, meaning_)                            \
  fields.push_back({#name_, Kind<type_>::type, #group_, meaning_, Kind<type_>::words(), false,    \
                    !std::is_same_v<type_, StageStrategies>,                                      \
                    [](const Choice& c) { return Kind<type_>::get(c.name_); },                    \
                    [](Choice& c, const Json& json) { Kind<type_>::put(#name_, c.name_, json); }, \
                    []([[maybe_unused]] const Choice& c) -> bool { return matters_; }});
#define CHOICE_GRID(name_, group_, meaning_)                                 \
  fields.push_back({#name_,                                                  \
                    std::string(#name_) == "cells" ? "cells" : "dimensions", \
                    #group_,                                                 \
                    meaning_,                                                \
                    {},                                                      \
                    false,                                                   \
                    false,                                                   \
                    get_##name_,                                             \
                    put_##name_,                                             \
                    [](const Choice&) { return true; }});
#include "haloscope/choice.def"
#undef CHOICE_FIELD
#undef CHOICE_GRID
  for (ChoiceField& field : fields)
    field.of_schedules = std::any_of(schedules().begin(), schedules().end(),
                                     [&](const Schedule* s) { return has(s->options, field.name); });
  return fields;
}

bool has_effect(const Choice& choice, const ChoiceField& field) {
  return field.matters(choice) && (!field.of_schedules || has(choice.schedule->options, field.name));
}

const ChoiceField& find_field(const std::string& name) {
  std::vector<std::string> names{"app", "set"};
  for (const ChoiceField& field : choice_fields()) {
    if (field.name == name) return field;
    names.push_back(field.name);
  }
  throw UsageError(unknown_name("field of a choice", name, names));
}

std::int64_t integer_from(const ChoiceField& field, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || text.empty())
    refuse(field.name, text, "whole numbers");
  return number;
}

}  // namespace

const std::vector<ChoiceField>& choice_fields() {
  static const std::vector<ChoiceField> fields = make_fields();
  return fields;
}

bool matters(const Choice& choice, const std::string& field) { return has_effect(choice, find_field(field)); }

Choice normal(Choice choice) {
  static const Choice defaults;
  for (const ChoiceField& field : choice_fields())
    if (!has_effect(choice, field)) field.put(choice, field.get(defaults));
  return choice;
}

Json to_json(const ParameterValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

ParameterValue parameter_from_json(const std::string& name, const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  std::vector<double> list;
  for (const Json& n : json) {
    if (!n.is_number()) refuse("set " + name, json, "a number, a word, true or false, or a list of numbers");
    list.push_back(n.get<double>());
  }
  return list;
}

ParameterValue parameter_value(const std::vector<Parameter>& schema, const std::string& name, const Json& json) {
  const auto known = std::find_if(schema.begin(), schema.end(), [&](const Parameter& p) { return p.name == name; });
  return known != schema.end() && json.is_string() ? parse_value(*known, json.get<std::string>())
                                                   : parameter_from_json(name, json);
}

Json to_json(const Choice& choice) {
  const Problem problem = problem_of(choice);
  Json json{{"app", choice.app}};
  for (const ChoiceField& field : choice_fields())
    if (has_effect(choice, field)) json[field.name] = field.get(choice);
  json["form"] = problem.form;
  if (choice.stage_strategies.empty()) json.erase("stage_strategies");
  for (const Parameter& parameter : parameters_of(find_app(choice.app)))
    if (const auto at = choice.set.find(parameter.name);
        at != choice.set.end() && checked_value(parameter, at->second) != parameter.value)
      json["set"][parameter.name] = to_json(checked_value(parameter, at->second));
  return json;
}

Choice choice_from_json(const Json& json) {
  if (!json.is_object())
    throw UsageError("a choice is a JSON object with an app and its cells, not " + shown(json.dump()));
  if (!json.contains("app") || !json["app"].is_string() || !json.contains("cells"))
    throw UsageError("a choice needs at least an app and its cells; this one lacks one or both: " + shown(json.dump()));
  Choice choice;
  choice.app = json["app"].get<std::string>();
  const App& app = find_app(choice.app);
  put_cells(choice, json["cells"]);
  put_periodic(choice, app.periodic ? "all" : "none");
  for (const auto& [name, value] : json.items()) {
    if (name == "app" || name == "cells") continue;
    if (name != "set") {
      find_field(name).put(choice, value);
      continue;
    }
    if (!value.is_object())
      throw UsageError("`set` is an object of parameters and their values, not " + shown(value.dump()));
    const auto schema = parameters_of(app);
    for (const auto& [parameter, entry] : value.items())
      choice.set[parameter] = parameter_value(schema, parameter, entry);
  }
  if (!json.contains("strategy") && messages_on_device(choice)) choice.strategy = "ordered/staged";
  return choice;
}

Json field_from_text(const ChoiceField& field, const std::string& text) {
  if (field.type == "integer") return integer_from(field, text);
  if (field.type == "flag") {
    if (text != "on" && text != "off") refuse(field.name, text, "on or off");
    return text == "on";
  }
  if (field.type == "cells") {
    Json list = Json::array();
    for (const std::string& word : split(text, 'x')) list.push_back(integer_from(field, word));
    return list;
  }
  if (field.type == "stage-strategies") {
    Json map = Json::object();
    for (const std::string& part : split(text, ';')) {
      const auto equals = part.find('=');
      if (equals == std::string::npos) refuse(field.name, text, "STAGE=STRATEGY;STAGE=STRATEGY;...");
      map[part.substr(0, equals)] = part.substr(equals + 1);
    }
    return map;
  }
  return text;
}

}  // namespace haloscope
