#include "haloscope/core/choice.hpp"

#include <algorithm>

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

/// One line per transport.
const std::vector<TransportTraits>& transport_traits() {
  static const std::vector<TransportTraits> traits{
      {"p2p", {"blocking", "testany", "datatype"}, {"", "blocking", "testany", "datatype"}},
      {"persistent", {"testany", "datatype"}, {"", "testany", "datatype"}},
  };
  return traits;
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
  const auto [transport, transport_options] = cut_options(text.substr(slash + 1));
  if (!has(pattern_names, pattern)) throw UsageError(unknown_name("strategy", text, strategy_names()));
  strategy.pattern = pattern == "ordered" ? Pattern::ordered : Pattern::direct;
  for (const auto& option : options) apply_pattern_option(strategy, option);
  strategy.transport = find_traits(transport).name;
  for (const auto& option : transport_options)
    if (!has(find_traits(transport).options, option))
      throw UsageError(unknown_name("option of transport " + transport, option, find_traits(transport).options));
  strategy.transport_options = transport_options;
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
  return text;
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list{"reference"};
    for (const char* pattern : {"ordered", "ordered:self-first", "direct", "direct:merged"})
      for (const auto& transport : transport_traits())
        for (const auto& options : transport.listed)
          list.push_back(std::string(pattern) + "/" + transport.name + (options.empty() ? "" : ":" + options));
    return list;
  }();
  return names;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"bulk", "split", "interleaved", "comm-thread"};
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

std::string illegal(const Choice& choice) {
  try {
    const AppInfo& app = find_app(choice.app);
    if (auto reason = illegal_names(choice, app); !reason.empty()) return reason;
    const Strategy strategy = parse_strategy(choice.strategy);
    if (auto reason = illegal_combination(choice, app, strategy); !reason.empty()) return reason;
    const Layout layout = make_layout(choice);
    make_plan(layout, 0, exchange_spec(choice));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace haloscope
