#include "haloscope/extend/parameters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

template <class... F>
struct Visitor : F... {
  using F::operator()...;
};
template <class... F>
Visitor(F...) -> Visitor<F...>;

[[noreturn]] void refuse(const Parameter& parameter, const std::string& text, const std::string& wanted) {
  throw UsageError("parameter " + parameter.name + " = '" + text + "' is not possible; give " + wanted);
}

std::string range_of(const Parameter& p) {
  const bool low = std::isfinite(p.least), high = std::isfinite(p.most);
  const auto shown = [](double number) { return to_text(ParameterValue(number)); };
  if (low && high) return " from " + shown(p.least) + " to " + shown(p.most);
  if (low) return " of " + shown(p.least) + " or more";
  return high ? " of " + shown(p.most) + " or less" : "";
}

/// Parses the whole of `text` as a number.
template <class Number>
bool parse_number(const std::string& text, Number& number) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc{} && end == text.data() + text.size() && !text.empty();
}

std::string wanted_of(const Parameter& p) {
  return std::visit(
      Visitor{[](bool) { return std::string("on or off"); },
              [&](std::int64_t) { return "a whole number" + range_of(p); },
              [&](double) { return "a finite number" + range_of(p); },
              [&](const std::string&) { return p.words.empty() ? "text" : "one of " + join(p.words, ", "); },
              [&](const std::vector<double>&) { return "finite numbers" + range_of(p) + ", separated by commas"; }},
      p.value);
}

/// Returns a value of the parameter's type, if it is in its range. @param text its original text.
ParameterValue in_range(const Parameter& p, const ParameterValue& value, const std::string& text) {
  const auto check = [&](double n) {
    if (!std::isfinite(n) || n < p.least || n > p.most) refuse(p, text, wanted_of(p));
  };
  std::visit(Visitor{[](bool) {}, [&](std::int64_t n) { check(static_cast<double>(n)); }, check,
                     [&](const std::string& word) {
                       if (!p.words.empty() && !has(p.words, word))
                         throw UsageError(unknown_name("value of parameter " + p.name, word, p.words));
                     },
                     [&](const std::vector<double>& list) { std::for_each(list.begin(), list.end(), check); }},
             value);
  return value;
}

}  // namespace

std::string to_text(const ParameterValue& value) {
  const auto number = [](double n) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, n).ptr);  // shortest text of that number
  };
  return std::visit(
      Visitor{[](bool on) { return std::string(on ? "on" : "off"); }, [](std::int64_t n) { return std::to_string(n); },
              number, [](const std::string& text) { return text; },
              [&](const std::vector<double>& list) {
                std::vector<std::string> words;
                for (double n : list) words.push_back(number(n));
                return join(words, ",");
              }},
      value);
}

ParameterValue parse_value(const Parameter& p, const std::string& text) {
  const auto list = [&] {
    std::vector<double> numbers;
    if (text.ends_with(',')) refuse(p, text, wanted_of(p));
    for (const std::string& word : split(text, ','))
      if (!parse_number(word, numbers.emplace_back())) refuse(p, text, wanted_of(p));
    return ParameterValue(numbers);
  };
  const ParameterValue value = std::visit(Visitor{[&](bool) {
                                                    if (text != "on" && text != "off") refuse(p, text, wanted_of(p));
                                                    return ParameterValue(text == "on");
                                                  },
                                                  [&](auto number) {
                                                    if (!parse_number(text, number)) refuse(p, text, wanted_of(p));
                                                    return ParameterValue(number);
                                                  },
                                                  [&](const std::string&) { return ParameterValue(text); },
                                                  [&](const std::vector<double>&) { return list(); }},
                                          p.value);
  return in_range(p, value, text);
}

ParameterValue checked_value(const Parameter& p, const ParameterValue& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (whole && std::holds_alternative<double>(p.value)) return checked_value(p, static_cast<double>(*whole));
  if (value.index() != p.value.index()) refuse(p, to_text(value), wanted_of(p));
  return in_range(p, value, to_text(value));
}

Parameters::Parameters(const std::vector<Parameter>& schema, const Given& values, const std::string& app) {
  std::vector<std::string> names;
  for (const Parameter& p : schema) {
    names.push_back(p.name);
    const auto at = values.find(p.name);
    values_[p.name] = at == values.end() ? p.value : checked_value(p, at->second);
  }
  for (const auto& [name, value] : values)
    if (!has(names, name)) {
      if (names.empty()) throw UsageError("app '" + app + "' has no parameters; drop --set " + name + "=...");
      throw UsageError(unknown_name("parameter of app '" + app + "'", name, names));
    }
}

}  // namespace haloscope
