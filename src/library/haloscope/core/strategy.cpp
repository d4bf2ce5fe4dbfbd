#include "haloscope/strategy.hpp"

#include <algorithm>
#include <tuple>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/transport_traits.hpp"

namespace haloscope {

namespace {

const std::string fields_option = "fields=";

const std::vector<std::string>& pattern_options() {
  static const std::vector<std::string> options = [] {
    std::vector<std::string> list{"merged", "self-first", "corners"};
    for (const std::string& word : Words<Merge>::all()) list.push_back(fields_option + word);
    return list;
  }();
  return options;
}

/// Splits "name:option,option" into name and options.
std::pair<std::string, std::vector<std::string>> cut_options(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return {text, {}};
  return {text.substr(0, colon), split(text.substr(colon + 1), ',')};
}

void apply_pattern_option(Strategy& strategy, const std::string& option) {
  if (!has(pattern_options(), option)) throw UsageError(unknown_name("pattern option", option, pattern_options()));
  if (option == "merged") strategy.merged = true;
  if (option == "self-first") strategy.self_first = true;
  if (option == "corners") strategy.corners = true;
  if (option.starts_with(fields_option)) strategy.fields = from_word<Merge>(option.substr(fields_option.size()));
}

/// Refuses a text without a slash, which is a misspelt strategy, or a transport without its pattern.
[[noreturn]] void refuse(const std::string& text) {
  for (const TransportTraits* traits : transport_traits())
    if (text.substr(0, text.find_first_of(":+")) == traits->name)
      throw UsageError("strategy '" + text + "' names a transport without a pattern; use 'ordered/" + text +
                       "' or 'direct/" + text + "'");
  throw UsageError(unknown_name("strategy", text, strategy_names()));
}

/// One of a strategy's transports with the options it is used with.
struct TransportPart {
  const TransportTraits& traits;
  const std::vector<std::string>& options;
  bool collective() const {
    return traits.collective_rounds || std::any_of(options.begin(), options.end(), [&](const std::string& word) {
             return has(traits.collective_options, word);
           });
  }
};

std::vector<TransportPart> parts_of(const Strategy& s) {
  std::vector<TransportPart> parts{{find_traits(s.transport), s.transport_options}};
  if (!s.between.empty()) parts.push_back({find_traits(s.between), s.between_options});
  return parts;
}

/// Checks the transports inside and between nodes. @param text the strategy as written.
void check_pair(const Strategy& s, const std::string& text) {
  const TransportTraits &inside = find_traits(s.transport), &outside = find_traits(s.between);
  if (!inside.inside_nodes || outside.inside_nodes || outside.device)
    throw UsageError("strategy '" + text + "' joins '" + s.transport + "' and '" + s.between +
                     "'; only shared memory inside nodes is joined with another transport between them, as in "
                     "'ordered/shared+p2p'");
  check_options(s.between, s.between_options);
}

void refuse_rounds_under_way(const Strategy& s) {
  if (s.fields == Merge::pipelined && collective_rounds(s))
    throw UsageError("strategy '" + to_string(s) +
                     "' starts a round while the one before is in flight, and rounds of its transport are collective; "
                     "use fields=serial, or another transport such as p2p");
}

void add_names(std::vector<std::string>& list, bool device) {
  for (const char* pattern : {"ordered", "ordered:self-first", "direct", "direct:merged"})
    for (const TransportTraits* transport : transport_traits())
      for (const auto& options : transport->listed)
        if (transport->device == device)
          list.push_back(std::string(pattern) + "/" + transport->name + (options.empty() ? "" : ":" + options));
}

}  // namespace

Strategy::Strategy(const std::string& text) {
  if (text == "reference") {
    pattern = Pattern::direct;
    transport = "reference";
    return;
  }
  if (text == "auto" || text.starts_with("auto:")) {
    *this = Strategy("ordered/" + text);
    return;
  }
  const auto slash = text.find('/');
  if (slash == std::string::npos) refuse(text);
  const auto [pattern_name, options] = cut_options(text.substr(0, slash));
  const std::string way = text.substr(slash + 1);
  const auto plus = way.find('+');
  if (pattern_name != "ordered" && pattern_name != "direct")
    throw UsageError(unknown_name("strategy", text, strategy_names()));
  pattern = pattern_name == "ordered" ? Pattern::ordered : Pattern::direct;
  for (const auto& option : options) apply_pattern_option(*this, option);
  std::tie(transport, transport_options) = cut_options(way.substr(0, plus));
  check_options(transport, transport_options);
  if (plus != std::string::npos) std::tie(between, between_options) = cut_options(way.substr(plus + 1));
  if (transport == "reference" || between == "reference")
    throw UsageError("strategy 'reference' fills all halos in one round; write it alone, without a pattern");
  if (plus != std::string::npos) check_pair(*this, text);
  refuse_rounds_under_way(*this);
}

std::string to_string(const Strategy& strategy) {
  if (strategy.is_reference()) return "reference";
  std::vector<std::string> options;
  if (strategy.merged) options.push_back("merged");
  if (strategy.self_first) options.push_back("self-first");
  if (strategy.corners) options.push_back("corners");
  if (strategy.fields != Merge::all) options.push_back(fields_option + to_word(strategy.fields));
  std::string text = strategy.pattern == Pattern::ordered ? "ordered" : "direct";
  if (!options.empty()) text += ":" + join(options, ",");
  text += "/" + strategy.transport;
  if (!strategy.transport_options.empty()) text += ":" + join(strategy.transport_options, ",");
  if (!strategy.between.empty()) text += "+" + strategy.between;
  if (!strategy.between_options.empty()) text += ":" + join(strategy.between_options, ",");
  return text;
}

void apply(const Strategy& strategy, const Layout& layout, ExchangeSpec& spec) {
  spec.pattern = strategy.pattern;
  spec.corners = spec.corners || strategy.corners;
  spec.merge_peers = strategy.merged;
  spec.merge = strategy.fields;
  if (strategy.self_first)
    std::stable_partition(spec.order.begin(), spec.order.end(),
                          [&](int d) { return layout.grid().periodic[d] && layout.ranks()[d] == 1; });
}

bool collective_rounds(const Strategy& strategy) {
  const auto parts = parts_of(strategy);
  return std::any_of(parts.begin(), parts.end(), [](const TransportPart& part) { return part.collective(); });
}

bool needs_shared_fields(const Strategy& strategy) {
  const TransportTraits& traits = find_traits(strategy.transport);
  return traits.shared_fields &&
         (traits.private_option.empty() || !has(strategy.transport_options, traits.private_option));
}

bool moves_device_memory(const Strategy& strategy) { return find_traits(strategy.transport).device; }

bool signals(const Strategy& strategy) { return find_traits(strategy.transport).signals; }

bool calls_concurrently(const Strategy& strategy) {
  const auto parts = parts_of(strategy);
  return std::any_of(parts.begin(), parts.end(),
                     [](const TransportPart& part) { return part.traits.concurrent_calls; });
}

std::string refused_single_messages(const Strategy& strategy) {
  const std::string start = "strategy '" + to_string(strategy) + "' cannot move single messages, as a pipeline does: ";
  if (strategy.is_reference()) return start + "it fills all halos in one round; use a transport such as p2p";
  for (const TransportPart& part : parts_of(strategy)) {
    if (!part.traits.single_messages || part.collective())
      return start +
             "each of its rounds is collective or timed as a whole, which would serialise the pipeline; use p2p, "
             "persistent, rma-pscw:per-message, rma-lock or rma-lockall";
    if (!part.traits.single_option.empty() && !has(part.options, part.traits.single_option))
      return start + "its messages share their synchronisation; add option '" + part.traits.single_option + "'";
  }
  return "";
}

std::vector<std::string> probes_of(const Strategy& strategy) {
  std::vector<std::string> probes;
  const auto add = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (!has(probes, name)) probes.push_back(name);
  };
  for (const TransportPart& part : parts_of(strategy)) {
    const ProbeNeeds& needs = part.traits.needs;
    add(needs.always);
    bool found = false;
    for (const std::string& word : part.options)
      if (const auto at = needs.with.find(word); at != needs.with.end()) {
        add(at->second);
        found = true;
      }
    if (!found) add(needs.without);
  }
  return probes;
}

std::vector<std::string> device_strategy_names() {
  std::vector<std::string> list;
  add_names(list, true);
  return list;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> list{"reference"};
  add_names(list, false);
  for (const TransportTraits* inside : transport_traits())
    for (const TransportTraits* outside : transport_traits())
      if (inside->inside_nodes && !outside->inside_nodes && !outside->device && !outside->listed.empty())
        list.push_back("ordered/" + inside->name + "+" + outside->name);
  return list;
}

}  // namespace haloscope
