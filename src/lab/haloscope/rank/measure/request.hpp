// Requests to the ranks: the `request` of a record. A line of a requests file is {"kind", "id", "request"}.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "haloscope/extend/candidate.hpp"

namespace haloscope {

/// A measurement: a choice, and the settings to measure it with.
struct Request {
  std::string id;
  Choice choice;
#define MEASURE_FIELD(type, name, value, meaning) type name = value;
#include "haloscope/rank/measure/measure.def"
#undef MEASURE_FIELD
};

/// @param json  the request of a record: fields of choice.def and measure.def, app, set. @param ranks  size of the run.
/// @throws UsageError for an unknown field, an impossible value, an illegal choice; UnavailableError for features that
///         this build or CPU lacks.
Request measurement_request(const nlohmann::json& json, const std::string& id, int ranks);

/// Returns the choice of a request, without its settings of measuring. @throws UsageError for an unknown field or an
/// impossible value.
Choice requested_choice(const nlohmann::json& request);

/// Returns the settings of measuring of a request, as requested.
nlohmann::json measure_json(const Request& request);

/// The fields of measure.def: name and meaning.
std::vector<std::pair<std::string, std::string>> measure_fields();

/// The request from APP and options on a command line: `laplace2d --cells 64x64 --set weights=...`.
/// @param program_options  options of the program itself, which come before APP.
/// @throws UsageError for an unknown option, with the nearest ones of both, or a value that cannot be.
nlohmann::json request_from_words(const std::vector<std::string>& words,
                                  const std::vector<std::string>& program_options);

/// Help text of those options.
std::string request_help();

}  // namespace haloscope
