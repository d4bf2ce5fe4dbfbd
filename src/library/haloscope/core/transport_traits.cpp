#include "haloscope/extend/transport_traits.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

#define TRANSPORT(name) extern const TransportTraits name##_traits;
#include "haloscope/transport/transports.def"
#undef TRANSPORT

namespace {

std::vector<const TransportTraits*>& known_traits() {
  static std::vector<const TransportTraits*> all{
#define TRANSPORT(name) &name##_traits,
#include "haloscope/transport/transports.def"
#undef TRANSPORT
  };
  return all;
}

}  // namespace

std::vector<OptionRule> one_of(const std::vector<std::string>& words, const std::string& reason) {
  std::vector<OptionRule> rules;
  for (std::size_t a = 0; a < words.size(); ++a)
    for (std::size_t b = a + 1; b < words.size(); ++b) rules.push_back({{words[a], words[b]}, reason});
  return rules;
}

const std::vector<const TransportTraits*>& transport_traits() { return known_traits(); }

const TransportTraits& find_traits(const std::string& name) { return find_named("transport", known_traits(), name); }

void add_traits(const TransportTraits& traits) {
  require_new("transport", known_traits(), traits.name);
  known_traits().push_back(&traits);
}

namespace {

/// Returns the digits of `word` if it sets a number of `option`; else null.
const char* digits_for(const std::string& option, const std::string& word) {
  return word.starts_with(option) && word[option.size()] == '=' ? word.c_str() + option.size() + 1 : nullptr;
}

/// Returns true if a word is an option with a number. @throws UsageError where the number is malformed or out of
/// range.
bool check_number(const TransportTraits& traits, const std::string& word) {
  for (const NumberOption& option : traits.numbers)
    if (const char* const digits = digits_for(option.name, word)) {
      int number = 0;
      const char* const end = word.c_str() + word.size();
      const auto read = std::from_chars(digits, end, number);
      if (read.ec != std::errc() || read.ptr != end || number < option.least || number > option.most)
        throw UsageError("option '" + word + "' of transport " + traits.name + " needs a number from " +
                         std::to_string(option.least) + " to " + std::to_string(option.most));
      return true;
    }
  return false;
}

}  // namespace

int number_of(const std::vector<std::string>& words, const std::string& option, int usual) {
  for (const std::string& word : words)
    if (const char* const digits = digits_for(option, word)) return std::atoi(digits);
  return usual;
}

std::vector<std::string> option_texts(const TransportTraits& traits) {
  std::vector<std::string> texts = traits.options;
  for (const NumberOption& option : traits.numbers)
    texts.push_back(option.name + "=" + std::to_string(option.least) + ".." + std::to_string(option.most));
  return texts;
}

void check_options(const std::string& transport, const std::vector<std::string>& words) {
  const TransportTraits& traits = find_traits(transport);
  const std::vector<std::string> known = option_texts(traits);
  if (known.empty() && !words.empty())
    throw UsageError("transport " + transport + " has no options, but was given '" + words.front() + "'; drop it");
  for (const OptionRule& rule : traits.rules)
    if (std::all_of(rule.words.begin(), rule.words.end(), [&](const std::string& word) { return has(words, word); }))
      throw UsageError(
          (rule.words.size() > 1
               ? "options '" + join(rule.words, "' and '") + "' of transport " + transport + " exclude each other"
               : "transport " + transport + " cannot have option '" + rule.words[0] + "'") +
          ": " + rule.reason);
  for (const std::string& word : words)
    if (!has(traits.options, word) && !check_number(traits, word))
      throw UsageError(unknown_name("option of transport " + transport, word, known) + " (options of " + transport +
                       ": " + join(known, ", ") + ")");
  for (const NumberOption& option : traits.numbers)
    if (std::count_if(words.begin(), words.end(), [&](const auto& word) { return digits_for(option.name, word); }) > 1)
      throw UsageError("transport " + transport + " was given option '" + option.name + "' twice; drop one");
}

}  // namespace haloscope
