#include "haloscope/core/choice.hpp"

#include <algorithm>
#include <tuple>

#include "haloscope/core/error.hpp"
#include "haloscope/core/names.hpp"

namespace haloscope {

namespace {

const std::vector<std::string> pattern_names{"ordered", "direct"};
const std::vector<std::string> pattern_options{"merged",     "self-first",  "corners",
                                               "fields=all", "fields=type", "fields=none"};

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

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

std::string in_dimension(int d) { return std::string(" in ") + "xyz"[d]; }

/// Reasons that concern the pattern, schedule and depth together; empty when there is none.
std::string illegal_combination(const Choice& c, const AppInfo& app, const Strategy& s) {
  if (s.transport == "reference" && c.schedule != "bulk")
    return "strategy 'reference' is the oracle and knows no overlap; use --schedule bulk";
  if (s.transport == "shared" && s.between.empty() && c.nodes > 1)
    return "transport 'shared' does not reach from node to node, and these ranks are on " + std::to_string(c.nodes) +
           "; use 'shared+p2p' (or another transport after the +)";
  if (s.transport == "reference" && s.pattern != Pattern::direct)
    return "strategy 'reference' fills all halos at once; write it alone, without a pattern";
  if (s.self_first && s.pattern == Pattern::direct)
    return "pattern option 'self-first' orders rounds, and a direct pattern has only one; use 'ordered:self-first'";
  if (c.schedule == "interleaved" && s.pattern != Pattern::ordered)
    return "schedule 'interleaved' works between the rounds of an ordered pattern, and 'direct' has one round; use "
           "'ordered/...' or --schedule split";
  if (c.schedule == "comm-thread" && c.threads < 2)
    return "schedule 'comm-thread' needs one thread to communicate and at least one to compute; use --threads 2 or "
           "more";
  if (c.region == "blocked") {
    if (!has(app.blocked_forms, c.form.empty() ? app.forms.front() : c.form))
      return "region 'blocked' fuses time steps on chip, and app '" + c.app +
             "' has no such kernel; use full or shrink";
    for (int d = 0; d < app.dims; ++d)
      if (!c.grid.periodic[d])
        return "region 'blocked' keeps no physical boundary values between fused steps; make the grid periodic" +
               in_dimension(d) + ", or use full or shrink";
    if (c.schedule != "bulk" && c.schedule != "split")
      return "region 'blocked' is made for schedules bulk and split, not '" + c.schedule + "'";
  }
  return "";
}

/// Reasons that concern poisson2d and its in-place method; empty when there is none.
std::string illegal_poisson(const Choice& c, const AppInfo& app, const Strategy& s) {
  const bool in_place = app.name == "poisson2d" && c.form == "gauss-seidel";
  if (c.schedule == "pipeline" && !in_place)
    return "schedule 'pipeline' is for sweeps in place; use it with app poisson2d and --form gauss-seidel";
  if (app.name != "poisson2d") return "";
  if (c.grid.periodic[0] || c.grid.periodic[1])
    return "app 'poisson2d' has fixed border values on all sides; use --periodic none";
  if (c.grid.cells[0] != c.grid.cells[1] || c.grid.cells[0] % 8 != 7)
    return "app 'poisson2d' has a square of 8 I + 7 inner cells per side; use --interlines I, or --cells 7, 15, 23, ...";
  if (!in_place) return "";
  if (c.schedule != "pipeline")
    return "Gauss-Seidel updates in place, line after line, which schedule '" + c.schedule +
           "' cannot do; use --schedule pipeline";
  if (c.depth > 1) return "schedule 'pipeline' passes each line on in each step; use --depth 1";
  if (make_layout(c).ranks()[0] != 1)
    return "schedule 'pipeline' needs blocks of whole lines, one behind the other; use --process-grid lines";
  return refused_single_messages(s);
}

std::string illegal_names(const Choice& c, const AppInfo& app) {
  if (!c.form.empty() && !has(app.forms, c.form)) return unknown_name("form of " + app.name, c.form, app.forms);
  if (!has(app.reals, c.real)) return unknown_name("scalar type of " + app.name, c.real, app.reals);
  if (!has(schedule_names(), c.schedule)) return unknown_name("schedule", c.schedule, schedule_names());
  if (!has(region_names(), c.region)) return unknown_name("region", c.region, region_names());
  const std::vector<std::string> sharings{"guided", "dynamic"};
  if (!has(sharings, c.sharing)) return unknown_name("sharing", c.sharing, sharings);
  if (c.grid.dims != app.dims)
    return "app '" + app.name + "' needs " + std::to_string(app.dims) + " numbers of cells, not " +
           std::to_string(c.grid.dims) + "; write --cells " + (app.dims == 2 ? "LENGTHxHEIGHT" : "XxYxZ");
  if (c.depth < 1) return "depth " + std::to_string(c.depth) + " is not possible; use 1 or more";
  if (c.threads < 1) return "threads " + std::to_string(c.threads) + " is not possible; use 1 or more";
  return "";
}

}  // namespace

/// Rules by which any two of these words exclude each other.
static std::vector<OptionRule> one_of(const std::vector<std::string>& words, const std::string& reason) {
  std::vector<OptionRule> rules;
  for (std::size_t a = 0; a < words.size(); ++a)
    for (std::size_t b = a + 1; b < words.size(); ++b) rules.push_back({{words[a], words[b]}, reason});
  return rules;
}

/// Rules of a one-sided transport.
/// @param requests  whether it can have gets with requests.
static std::vector<OptionRule> rma_rules(const std::vector<std::vector<OptionRule>>& own, bool requests = false) {
  std::vector<OptionRule> rules = one_of({"put", "get"}, "the sender puts or the receiver gets; drop one of them");
  for (const auto& more : own) rules.insert(rules.end(), more.begin(), more.end());
  if (requests)
    rules.push_back({{"put", "rget"}, "rget makes the receiver fetch; drop one of them"});
  else
    rules.push_back({{"rget"}, "MPI allows requests only in passive-target epochs (MPI-3.1, 11.3.5), and waiting for "
                               "each has a use only where the epoch lasts; use rma-lockall:rget"});
  return rules;
}

/// One entry per transport.
const std::vector<TransportTraits>& transport_traits() {
  const auto one_or_many = one_of({"single", "per-message"}, "there is one window or one per message; drop one of them");
  const auto message_or_flag = one_of({"message", "flag"}, "readiness is told in one of these ways; drop one of them");
  static const std::vector<TransportTraits> traits{
      {"p2p", {"blocking", "testany", "datatype"}, {"", "blocking", "testany", "datatype"}},
      {"persistent", {"testany", "datatype"}, {"", "testany", "datatype"}},
      {.name = "rma-fence",
       .options = {"put", "get", "single", "per-message", "split", "plain"},
       .listed = {"", "get", "split"},
       .collective_rounds = true,
       .single_messages = false,
       .rules = rma_rules({one_of({"single", "per-message", "split"}, "they are different sets of windows; give one")})},
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
  };
  return traits;
}

std::string refused_options(const std::string& transport, const std::vector<std::string>& given) {
  for (const OptionRule& rule : find_traits(transport).rules)
    if (std::all_of(rule.words.begin(), rule.words.end(), [&](const std::string& word) { return has(given, word); }))
      return (rule.words.size() > 1 ? "options '" + join(rule.words, "' and '") + "' of transport " + transport +
                                          " exclude each other"
                                    : "transport " + transport + " cannot have option '" + rule.words.front() + "'") +
             ": " + rule.reason;
  return "";
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
    return asked + "each of its rounds is collective, which would serialise the pipeline; use p2p, persistent, " +
           "rma-pscw:per-message, rma-lock or rma-lockall";
  if (t.single_option.empty() || has(strategy.transport_options, t.single_option)) return "";
  return asked + "its messages share their synchronisation; add option '" + t.single_option + "'";
}

namespace {

/// @throws UsageError for a transport that is not known or cannot have these options.
void check_transport(const std::string& name, const std::vector<std::string>& options) {
  const TransportTraits& traits = find_traits(name);
  if (auto reason = refused_options(name, options); !reason.empty()) throw UsageError(reason);
  for (const auto& option : options)
    if (!has(traits.options, option))
      throw UsageError(unknown_name("option of transport " + name, option, traits.options));
}

}  // namespace

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
  check_transport(transport, transport_options);
  strategy.transport = transport;
  strategy.transport_options = transport_options;
  if (plus == std::string::npos) return strategy;
  std::tie(strategy.between, strategy.between_options) = cut_options(way.substr(plus + 1));
  if (transport != "shared" || strategy.between == "shared")
    throw UsageError("strategy '" + text + "' joins '" + transport + "' and '" + strategy.between +
                     "'; only shared memory inside nodes is joined with another transport between them, as in "
                     "'ordered/shared+p2p'");
  check_transport(strategy.between, strategy.between_options);
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

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list{"reference"};
    for (const char* pattern : {"ordered", "ordered:self-first", "direct", "direct:merged"})
      for (const auto& transport : transport_traits())
        for (const auto& options : transport.listed)
          list.push_back(std::string(pattern) + "/" + transport.name + (options.empty() ? "" : ":" + options));
    for (const auto& transport : transport_traits())
      if (transport.name != "shared") list.push_back("ordered/shared+" + transport.name);
    return list;
  }();
  return names;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"bulk", "split", "interleaved", "comm-thread", "pipeline"};
  return names;
}

const std::vector<std::string>& region_names() {
  static const std::vector<std::string> names{"full", "shrink", "blocked"};
  return names;
}

const std::vector<AppInfo>& app_infos() {
  static const std::vector<AppInfo> apps{
      {"advection3d", 3, 1, true, 53, "white", {"dense", "separable"}, {"f64"}, {}},
      {"laplace2d", 2, 1, false, 9, "valen", {"star"}, {"f64", "f32"}, {"star"}},
      {"laplace3d", 3, 1, false, 13, "white", {"star"}, {"f64", "f32"}, {}},
      {"poisson2d", 2, 1, false, 4, "lines", {"jacobi", "gauss-seidel"}, {"f64"}, {}},
  };
  return apps;
}

const AppInfo& find_app(const std::string& name) {
  std::vector<std::string> valid;
  for (const auto& app : app_infos()) {
    if (app.name == name) return app;
    valid.push_back(app.name);
  }
  throw UsageError(unknown_name("app", name, valid));
}

Layout make_layout(const Choice& choice) {
  const AppInfo& app = find_app(choice.app);
  const std::string& rule = choice.process_grid.empty() ? app.default_rule : choice.process_grid;
  return Layout(choice.grid, process_grid(rule, choice.ranks, choice.grid));
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

ExchangeSpec exchange_spec(const Choice& choice) {
  const AppInfo& app = find_app(choice.app);
  const Strategy strategy = parse_strategy(choice.strategy);
  ExchangeSpec spec;
  spec.quantities = {Quantity{"u", choice.real == "f32" ? 4 : 8, ScalarType::real, Centring::cell}};
  for (int d = 0; d < 3; ++d) spec.low[d] = spec.high[d] = d < app.dims ? choice.depth * app.radius : 0;
  spec.corners = app.box_stencil || choice.depth > 1;
  apply(strategy, make_layout(choice), spec);
  return spec;
}

std::vector<int> emulated_nodes(int ranks, int nodes, const std::string& placement) {
  const std::vector<std::string> placements{"block", "round-robin"};
  if (!has(placements, placement)) throw UsageError(unknown_name("placement", placement, placements));
  if (nodes < 0 || nodes > ranks)
    throw UsageError(std::to_string(ranks) + " rank(s) cannot be split into " + std::to_string(nodes) +
                     " nodes; use 1 to " + std::to_string(ranks) + " nodes, or 0 for the real ones");
  std::vector<int> node_of;
  for (int r = 0; r < ranks && nodes > 0; ++r)
    node_of.push_back(placement == "block" ? static_cast<int>(static_cast<std::int64_t>(r) * nodes / ranks) : r % nodes);
  return node_of;
}

std::string illegal(const Choice& choice) {
  try {
    const AppInfo& app = find_app(choice.app);
    if (auto reason = illegal_names(choice, app); !reason.empty()) return reason;
    const Strategy strategy = parse_strategy(choice.strategy);
    if (auto reason = illegal_combination(choice, app, strategy); !reason.empty()) return reason;
    if (auto reason = illegal_poisson(choice, app, strategy); !reason.empty()) return reason;
    const Layout layout = make_layout(choice);
    make_plan(layout, 0, exchange_spec(choice));
    emulated_nodes(choice.ranks, choice.nodes, choice.placement);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace haloscope
