// Parameters of an app, which users may set, with type, range, default and help; and the values that were set.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace haloscope {

/// A flag, an integer, a real number, a word or text, or several real numbers. The type of a parameter is the type of
/// its default.
using ParameterValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

/// One parameter of an app.
struct Parameter {
  std::string name;
  ParameterValue value;                                     ///< default
  std::string help;                                         ///< one sentence
  double least = -std::numeric_limits<double>::infinity();  ///< of a number, or of each of several
  double most = std::numeric_limits<double>::infinity();
  std::vector<std::string> words = {};  ///< the valid words; empty: any text
};

/// Parses the value of one parameter from the text after `--set NAME=`, by its type.
/// @throws UsageError for text that is not such a value, a number that is not finite or out of range, an unknown word.
ParameterValue parse_value(const Parameter& parameter, const std::string& text);
/// Returns the value, checked. @throws UsageError as parse_value() does, and for a value of another type (integers
/// count as real numbers).
ParameterValue checked_value(const Parameter& parameter, const ParameterValue& value);
/// Returns the value in the form that parse_value() reads.
std::string to_text(const ParameterValue& value);

/// The values of all parameters of an app: set values, and defaults for the rest.
class Parameters {
 public:
  using Given = std::map<std::string, ParameterValue>;

  Parameters() = default;
  /// @throws UsageError for a name that `schema` lacks (naming the nearest) and as checked_value() does.
  Parameters(const std::vector<Parameter>& schema, const Given& values, const std::string& app);

  bool flag(const std::string& name) const { return get<bool>(name); }
  std::int64_t integer(const std::string& name) const { return get<std::int64_t>(name); }
  double real(const std::string& name) const { return get<double>(name); }
  const std::string& word(const std::string& name) const { return get<std::string>(name); }
  const std::vector<double>& reals(const std::string& name) const { return get<std::vector<double>>(name); }
  const std::map<std::string, ParameterValue>& all() const { return values_; }
  bool operator==(const Parameters&) const = default;

 private:
  template <class T>
  const T& get(const std::string& name) const {
    return std::get<T>(values_.at(name));
  }
  std::map<std::string, ParameterValue> values_;
};

}  // namespace haloscope
