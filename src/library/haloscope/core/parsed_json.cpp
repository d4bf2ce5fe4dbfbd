#include "haloscope/core/parsed_json.hpp"

#include <algorithm>
#include <cstddef>

#include "haloscope/core/text.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

/// Returns the maximum depth of nested objects and lists, by the brackets outside texts.
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

using Json = nlohmann::json;

/// Reads JSON up to the first fault, and stores only that.
class FirstFault : public nlohmann::json_sax<Json> {
 public:
  std::size_t at = 0;  ///< bytes up to and including the fault
  std::string why;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    at = position;
    why = error.what();
    return false;
  }
};

/// Returns the text without "[json.exception.parse_error.101] parse error at line 1, column 2: ".
std::string bare(const std::string& why) {
  const std::size_t id = why.find("] ");
  const std::string text = id == std::string::npos ? why : why.substr(id + 2);
  const std::size_t place = text.find(": ");
  return text.rfind("parse error", 0) != 0 || place == std::string::npos ? text : text.substr(place + 2);
}

/// Returns the place and reason of the first fault of JSON. The line is omitted where the text has only one.
std::string fault_of(std::string_view text) {
  FirstFault fault;
  Json::sax_parse(text, &fault);
  const std::string_view before = text.substr(0, fault.at > 0 ? fault.at - 1 : 0);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t column = fault.at - (lines > 0 ? before.rfind('\n') + 1 : 0);
  const std::string line = text.find('\n') != std::string_view::npos ? "line " + std::to_string(lines + 1) + ", " : "";
  return line + "column " + std::to_string(column) + ": " + shown(bare(fault.why));
}

}  // namespace

nlohmann::json parsed_json(std::string_view text, const std::string& name) {
  if (text.size() > most_json_bytes)
    throw UsageError(name + " has " + std::to_string(text.size()) + " bytes, and JSON of at most " +
                     std::to_string(most_json_bytes) + " is read");
  if (depth_of(text) > most_json_depth)
    throw UsageError(name + " has more than " + std::to_string(most_json_depth) + " objects and lists in each other");
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) throw UsageError(name + " is not JSON: " + fault_of(text));
  return value;
}

}  // namespace haloscope
