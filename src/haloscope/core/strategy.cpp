#include "haloscope/strategy.hpp"

#include <algorithm>
#include <tuple>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

const std::vector<std::string> pattern_names{"ordered", "direct"};
const std::vector<std::string> pattern_options{"merged",     "self-first",  "corners",
                                               "fields=all", "fields=type", "fields=none"};

/// "name:option,option" -> name and options.
std::pair<std::string, std::vector<std::string>> cut_options(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return {text, {}};
  return {text.substr(0, colon), split(text.substr(colon + 1), ',')};
}

void apply_pattern_option(Strategy& strategy, const std::string& option) {
  if (!has(pattern_options, option)) throw UsageError(unknown_name("pattern option", option, pattern_options));
  if (option == "merged") strategy.merged = true;
  if (option == "self-first") strategy.self_first = true;
  if (option == "corners") strategy.corners = true;
  if (option == "fields=type") strategy.fields = Merge::type;
  if (option == "fields=none") strategy.fields = Merge::none;
}

const TransportTraits& find_traits(const std::string& name) {
  std::vector<std::string> valid;
  for (const auto& t : transport_traits()) {
    if (t.name == name) return t;
    valid.push_back(t.name);
  }
  throw UsageError(unknown_name("transport", name, valid));
}

/// Rules by which any two of these words exclude each other.
std::vector<OptionRule> one_of(const std::vector<std::string>& words, const std::string& reason) {
  std::vector<OptionRule> rules;
  for (std::size_t a = 0; a < words.size(); ++a)
    for (std::size_t b = a + 1; b < words.size(); ++b) rules.push_back({{words[a], words[b]}, reason});
  return rules;
}

/// Rules of a one-sided transport.
/// @param requests  whether it can have gets with requests.
std::vector<OptionRule> rma_rules(const std::vector<std::vector<OptionRule>>& own, bool requests = false) {
  std::vector<OptionRule> rules = one_of({"put", "get"}, "the sender puts or the receiver gets; drop one of them");
  for (const auto& more : own) rules.insert(rules.end(), more.begin(), more.end());
  if (requests)
    rules.push_back({{"put", "rget"}, "rget makes the receiver fetch; drop one of them"});
  else
    rules.push_back({{"rget"},
                     "MPI allows requests only in passive-target epochs (MPI-3.1, 11.3.5), and waiting for "
                     "each has a use only where the epoch lasts; use rma-lockall:rget"});
  return rules;
}

}  // namespace

/// One entry per transport.
const std::vector<TransportTraits>& transport_traits() {
  static const auto one_or_many =
      one_of({"single", "per-message"}, "there is one window or one per message; drop one of them");
  static const auto message_or_flag =
      one_of({"message", "flag"}, "readiness is told in one of these ways; drop one of them");
  static const std::vector<TransportTraits> traits{
      {.name = "p2p",
       .options = {"blocking", "testany", "datatype"},
       .listed = {"", "blocking", "testany", "datatype"},
       .rules = one_of({"blocking", "testany"}, "blocking waits for messages one by one; drop one of them")},
      {"persistent", {"testany", "datatype"}, {"", "testany", "datatype"}},
      {.name = "rma-fence",
       .options = {"put", "get", "single", "per-message", "split", "plain"},
       .listed = {"", "get", "split"},
       .collective_rounds = true,
       .single_messages = false,
       .rules =
           rma_rules({one_of({"single", "per-message", "split"}, "they are different sets of windows; give one")})},
      {.name = "rma-pscw",
       .options = {"put", "get", "single", "per-message", "plain"},
       .listed = {"", "get,per-message"},
       .single_option = "per-message",
       .rules = rma_rules({one_or_many})},
      {.name = "rma-lock",
       .options = {"put", "get", "single", "per-message", "message", "flag", "plain", "separate"},
       .listed = {"", "get,flag"},
       .rules = rma_rules({one_or_many, message_or_flag})},
      {.name = "rma-lockall",
       .options = {"put", "get", "rget", "single", "per-message", "message", "flag", "plain", "separate"},
       .listed = {"", "flag", "rget"},
       .rules = rma_rules({one_or_many, message_or_flag}, true)},
      {.name = "neighbor",
       .options = {"blocking", "persistent", "packed"},
       .listed = {"", "blocking", "persistent,packed"},
       .single_messages = false,
       .rules = one_of({"blocking", "persistent"}, "a persistent collective is started and awaited in two calls")},
      {"partitioned", {"late"}, {"", "late"}},
      {.name = "shared",
       .options = {"direct", "pull", "packed", "fence"},
       .listed = {"", "pull", "packed", "fence"},
       .collective_options = {"fence"},
       .rules = one_of({"direct", "pull", "packed", "fence"}, "they are different ways to move the bytes; give one")},
      {.name = "auto", .options = {"quick"}, .listed = {""}, .single_messages = false},
      {.name = "staged",
       .options = {"pinned", "pageable"},
       .listed = {"", "pageable"},
       .single_messages = false,
       .rules = one_of({"pinned", "pageable"}, "host buffers are one or the other; drop one of them"),
       .device = true},
      {.name = "aware", .options = {}, .listed = {""}, .single_messages = false, .device = true},
      {.name = "ipc", .options = {}, .listed = {""}, .single_messages = false, .device = true},
  };
  return traits;
}

std::vector<std::string> transport_options(const std::string& transport) {
  return transport == "reference" ? std::vector<std::string>{} : find_traits(transport).options;
}

void check_options(const std::string& transport, const std::vector<std::string>& given) {
  if (given.empty() && transport == "reference") return;
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

namespace {

bool collective(const std::string& transport, const std::vector<std::string>& options) {
  if (transport.empty() || transport == "reference") return false;
  const TransportTraits& t = find_traits(transport);
  return t.collective_rounds || std::any_of(options.begin(), options.end(),
                                            [&](const std::string& word) { return has(t.collective_options, word); });
}

}  // namespace

bool collective_rounds(const Strategy& strategy) {
  return collective(strategy.transport, strategy.transport_options) ||
         collective(strategy.between, strategy.between_options);
}

bool needs_shared_fields(const Strategy& strategy) {
  return strategy.transport == "shared" && !has(strategy.transport_options, "packed");
}

bool moves_device_memory(const Strategy& strategy) {
  return strategy.transport != "reference" && find_traits(strategy.transport).device;
}

std::string refused_single_messages(const Strategy& strategy) {
  const std::string asked = "strategy '" + to_string(strategy) + "' cannot move single messages, as a pipeline does: ";
  if (strategy.transport == "reference") return asked + "it fills all halos at once; use a transport such as p2p";
  if (!strategy.between.empty()) {
    Strategy far = strategy;
    far.transport = strategy.between;
    far.transport_options = strategy.between_options;
    far.between.clear();
    if (auto reason = refused_single_messages(far); !reason.empty()) return reason;
  }
  const TransportTraits& t = find_traits(strategy.transport);
  if (!t.single_messages || collective(strategy.transport, strategy.transport_options))
    return asked +
           "each of its rounds is collective or timed as a whole, which would serialise the pipeline; use p2p, "
           "persistent, " +
           "rma-pscw:per-message, rma-lock or rma-lockall";
  if (t.single_option.empty() || has(strategy.transport_options, t.single_option)) return "";
  return asked + "its messages share their synchronisation; add option '" + t.single_option + "'";
}

Strategy parse_strategy(const std::string& text) {
  Strategy strategy;
  if (text == "reference") {
    strategy.pattern = Pattern::direct;
    strategy.transport = "reference";
    return strategy;
  }
  const auto slash = text.find('/');
  if (slash == std::string::npos) throw UsageError(unknown_name("strategy", text, strategy_names()));
  const auto [pattern, options] = cut_options(text.substr(0, slash));
  const std::string way = text.substr(slash + 1);
  const auto plus = way.find('+');
  const auto [transport, transport_options] = cut_options(way.substr(0, plus));
  if (!has(pattern_names, pattern)) throw UsageError(unknown_name("strategy", text, strategy_names()));
  strategy.pattern = pattern == "ordered" ? Pattern::ordered : Pattern::direct;
  for (const auto& option : options) apply_pattern_option(strategy, option);
  check_options(transport, transport_options);
  strategy.transport = transport;
  strategy.transport_options = transport_options;
  if (plus == std::string::npos) return strategy;
  std::tie(strategy.between, strategy.between_options) = cut_options(way.substr(plus + 1));
  if (transport != "shared" || strategy.between == "shared" || find_traits(strategy.between).device)
    throw UsageError("strategy '" + text + "' joins '" + transport + "' and '" + strategy.between +
                     "'; only shared memory inside nodes is joined with another transport between them, as in "
                     "'ordered/shared+p2p'");
  check_options(strategy.between, strategy.between_options);
  return strategy;
}

std::string to_string(const Strategy& strategy) {
  if (strategy.transport == "reference") return "reference";
  std::vector<std::string> options;
  if (strategy.merged) options.push_back("merged");
  if (strategy.self_first) options.push_back("self-first");
  if (strategy.corners) options.push_back("corners");
  if (strategy.fields == Merge::type) options.push_back("fields=type");
  if (strategy.fields == Merge::none) options.push_back("fields=none");
  std::string text = strategy.pattern == Pattern::ordered ? "ordered" : "direct";
  if (!options.empty()) text += ":" + join(options, ",");
  text += "/" + strategy.transport;
  if (!strategy.transport_options.empty()) text += ":" + join(strategy.transport_options, ",");
  if (!strategy.between.empty()) text += "+" + strategy.between;
  if (!strategy.between_options.empty()) text += ":" + join(strategy.between_options, ",");
  return text;
}

namespace {

void add_names(std::vector<std::string>& list, bool device) {
  for (const char* pattern : {"ordered", "ordered:self-first", "direct", "direct:merged"})
    for (const auto& transport : transport_traits())
      for (const auto& options : transport.listed)
        if (transport.device == device)
          list.push_back(std::string(pattern) + "/" + transport.name + (options.empty() ? "" : ":" + options));
}

}  // namespace

const std::vector<std::string>& device_strategy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    add_names(list, true);
    return list;
  }();
  return names;
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list{"reference"};
    add_names(list, false);
    for (const auto& transport : transport_traits())
      if (transport.name != "shared" && !transport.device) list.push_back("ordered/shared+" + transport.name);
    return list;
  }();
  return names;
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

}  // namespace haloscope
