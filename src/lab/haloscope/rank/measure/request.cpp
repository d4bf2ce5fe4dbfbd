#include "haloscope/rank/measure/request.hpp"

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>

#include "haloscope/core/choice_fields.hpp"
#include "haloscope/core/denormals.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/parsed_json.hpp"
#include "haloscope/core/text.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

void check(bool good, const std::string& message) {
  if (!good) throw UsageError(message);
}

void take(const std::string& name, std::int64_t& value, const Json& json) {
  check(json.is_number_integer() && json.get<double>() < 9e18,
        "--" + name + " is " + shown(json.dump()) + "; give a whole number");
  value = json.get<std::int64_t>();
}
void take(const std::string& name, double& value, const Json& json) {
  check(json.is_number() && std::isfinite(json.get<double>()), "--" + name + " is " + json.dump() + "; give a number");
  value = json.get<double>();
}
void take(const std::string& name, bool& value, const Json& json) {
  check(json.is_boolean(), "--" + name + " " + json.dump() + " is neither on nor off");
  value = json.get<bool>();
}
void take(const std::string& name, std::string& value, const Json& json) {
  check(json.is_string(), "--" + name + " " + json.dump() + " is not a text");
  value = json.get<std::string>();
}

/// Refuses settings that cannot be measured for any choice.
void check_measure(const Request& r) {
  check(r.steps >= 1, "--steps " + std::to_string(r.steps) + " is not possible; use 1 or more");
  check(r.repetitions >= 1, "--repetitions must be 1 or more");
  check(r.warmup >= 0 && r.verify >= 0 && r.seconds >= 0, "--warmup, --verify and --seconds cannot be negative");
  check(!r.timeline || r.timers, "--timeline and --trace need --timers on");
  check(!r.events || r.timers, "--events are counted in timed operations; they need --timers on");
}

/// Refuses choices that this build or this CPU lacks.
void check_here(const Choice& choice) {
  if (choice.ftz && !can_flush_to_zero())
    throw UnavailableError("--ftz: this CPU or this build does not support it; run without");
  check(
      choice.device_block[0] * std::max(choice.device_block[1], 1) <= device::most_threads,
      "--device-block: a block has at most " + std::to_string(device::most_threads) + " threads; use smaller numbers");
#if !defined(_OPENMP)
  if (choice.threads > 1)
    throw UnavailableError("--threads " + std::to_string(choice.threads) +
                           ": this build has no OpenMP, so a rank is one thread; use --threads 1");
#endif
}

}  // namespace

Choice requested_choice(const Json& request) {
  Json choice = request;
  for (const auto& [name, meaning] : measure_fields())
    if (choice.is_object()) choice.erase(name);
  return choice_from_json(choice);
}

Request measurement_request(const Json& json, const std::string& id, int ranks) {
  check(json.is_object(), "a request is a JSON object, not " + json.dump());
  Request r;
  r.id = id;
  Json choice = json;
#define MEASURE_FIELD(type, name, value, meaning) \
  if (json.contains(#name)) take(#name, r.name, json[#name]);
#include "haloscope/rank/measure/measure.def"
#undef MEASURE_FIELD
  choice["ranks"] = ranks;
  if (choice.value("device", "") == "auto") choice["device"] = device::find_backend("auto").name;
  r.choice = requested_choice(choice);
  r.timeline = r.timeline || !r.trace.empty();
  check_measure(r);
  check_here(r.choice);
  if (auto reason = illegal(r.choice); !reason.empty()) throw UsageError(reason);
  const Problem problem = problem_of(r.choice);
  const App& app = find_app(r.choice.app);
  check(r.seconds <= 0 || !app.ends_early || !app.ends_early(problem),
        "--seconds decides when a repetition ends, and so do the parameters of app '" + app.name + "'; use --steps");
  return r;
}

Json measure_json(const Request& r) {
  Json json;
#define MEASURE_FIELD(type, name, value, meaning) json[#name] = r.name;
#include "haloscope/rank/measure/measure.def"
#undef MEASURE_FIELD
  return json;
}

std::vector<std::pair<std::string, std::string>> measure_fields() {
  return {
#define MEASURE_FIELD(type, name, value, meaning) {#name, meaning},
#include "haloscope/rank/measure/measure.def"
#undef MEASURE_FIELD
  };
}

namespace {

/// Options as text, by the name of the field that they stand for.
struct OptionTexts {
  std::string app;
  std::map<std::string, std::string> fields;
  std::vector<std::string> set;
};

std::string option_of(std::string field) {
  std::replace(field.begin(), field.end(), '_', '-');
  return "--" + field;
}

void declare(CLI::App& cli, OptionTexts& texts) {
  cli.allow_windows_style_options(false);
  cli.allow_extras();  // refused by refuse_extras()
  cli.add_option("app", texts.app, "the app to run")->required();
  for (const ChoiceField& field : choice_fields())
    cli.add_option(option_of(field.name), texts.fields[field.name], field.meaning);
  for (const auto& [name, meaning] : measure_fields()) cli.add_option(option_of(name), texts.fields[name], meaning);
  cli.add_option("--set", texts.set, "NAME=VALUE: a parameter of the app")->take_all()->allow_extra_args(false);
}

/// @throws UsageError for words that belong to no option.
void refuse_extras(const CLI::App& cli, const std::vector<std::string>& words,
                   const std::vector<std::string>& program_options) {
  const std::vector<std::string> extras = cli.remaining();
  if (extras.empty()) return;
  for (const std::string& word : words)
    if (const std::string name = word.substr(0, word.find('=')); name.starts_with("--") && has(extras, word)) {
      if (has(program_options, name)) throw UsageError("option '" + name + "' comes before the app: give it first");
      std::vector<std::string> valid = program_options;
      for (const CLI::Option* option : cli.get_options())
        if (const std::string other = option->get_name(); other.starts_with("--") && !has(valid, other))
          valid.push_back(other);
      throw UsageError(unknown_name("option", name, valid) + " (in: " + join(words, " ") + ")");
    }
  throw UsageError("'" + extras.front() + "' is not an option, nor the value of one (in: " + join(words, " ") + ")");
}

Json how_from_text(const std::string& name, const std::string& text) {
  if (name == "trace") return text;
  if (name == "timers" || name == "timeline" || name == "events") {
    check(text == "on" || text == "off", "--" + name + " is on or off");
    return text == "on";
  }
  const std::string label = "--" + name + " '" + shown(text) + "'";
  const Json number = parsed_json(text, label);
  check(number.is_number(), label + " is not a number");
  return number;
}

}  // namespace

Json request_from_words(const std::vector<std::string>& words, const std::vector<std::string>& program_options) {
  OptionTexts texts;
  CLI::App cli;
  declare(cli, texts);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes arguments last first
  try {
    cli.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (in: " + join(words, " ") + ")");
  }
  refuse_extras(cli, words, program_options);
  Json request{{"app", texts.app}};
  for (const ChoiceField& field : choice_fields())
    if (cli.count(option_of(field.name)) > 0) request[field.name] = field_from_text(field, texts.fields[field.name]);
  if (const Json cells = request.value("cells", Json{}); cells.size() == 1)  // one number for all dimensions
    request["cells"] = std::vector<Json>(static_cast<std::size_t>(find_app(texts.app).dims), cells[0]);
  for (const auto& [name, meaning] : measure_fields())
    if (cli.count(option_of(name)) > 0) request[name] = how_from_text(name, texts.fields[name]);
  for (const std::string& one : texts.set) {
    const auto equals = one.find('=');
    check(equals != std::string::npos && equals > 0, "--set '" + one + "' is not NAME=VALUE");
    request["set"][one.substr(0, equals)] = one.substr(equals + 1);
  }
  return request;
}

std::string request_help() {
  OptionTexts texts;
  CLI::App cli("One configuration");
  declare(cli, texts);
  return cli.help();
}

}  // namespace haloscope
