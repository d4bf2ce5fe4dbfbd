#include "haloscope/core/parsed_json.hpp"

#include <algorithm>

#include "haloscope/error.hpp"

namespace haloscope {

namespace {

/// The most objects and lists in each other, by the brackets outside texts.
int depth_of(std::string_view text) {
  int depth = 0, most = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') most = std::max(most, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return most;
}

}  // namespace

nlohmann::json parsed_json(std::string_view text, const std::string& what) {
  if (text.size() > most_json_bytes)
    throw UsageError(what + " has " + std::to_string(text.size()) + " bytes, and JSON of at most " +
                     std::to_string(most_json_bytes) + " is read");
  if (depth_of(text) > most_json_depth)
    throw UsageError(what + " has more than " + std::to_string(most_json_depth) + " objects and lists in each other");
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) throw UsageError(what + " is no JSON");
  return value;
}

}  // namespace haloscope
