#include "haloscope/transport_traits.hpp"

#include <algorithm>

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

const TransportTraits& find_traits(const std::string& name) {
  std::vector<std::string> valid;
  for (const TransportTraits* t : known_traits()) {
    if (t->name == name) return *t;
    valid.push_back(t->name);
  }
  throw UsageError(unknown_name("transport", name, valid));
}

void add_traits(const TransportTraits& traits) {
  for (const TransportTraits* t : known_traits())
    if (t->name == traits.name)
      throw UsageError("transport '" + traits.name + "' already exists; give yours another name");
  known_traits().push_back(&traits);
}

void check_options(const std::string& transport, const std::vector<std::string>& given) {
  const TransportTraits& traits = find_traits(transport);
  if (traits.options.empty() && !given.empty())
    throw UsageError("transport " + transport + " has no options, but was given '" + given.front() + "'; drop it");
  for (const OptionRule& rule : traits.rules)
    if (std::all_of(rule.words.begin(), rule.words.end(), [&](const std::string& word) { return has(given, word); }))
      throw UsageError(
          (rule.words.size() > 1
               ? "options '" + join(rule.words, "' and '") + "' of transport " + transport + " exclude each other"
               : "transport " + transport + " cannot have option '" + rule.words[0] + "'") +
          ": " + rule.reason);
  for (const std::string& word : given)
    if (!has(traits.options, word))
      throw UsageError(unknown_name("option of transport " + transport, word, traits.options) + " (options of " +
                       transport + ": " + join(traits.options, ", ") + ")");
}

}  // namespace haloscope
