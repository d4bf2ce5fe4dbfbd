#include "haloscope/choice.hpp"

#include <algorithm>
#include <tuple>

#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"

namespace haloscope {

namespace {

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
    if (c.device.empty() && !has(app.blocked_forms, c.form.empty() ? app.forms.front() : c.form))
      return "region 'blocked' fuses time steps on chip, and app '" + c.app +
             "' has no such kernel; use full or shrink";
    for (int d = 0; d < app.dims; ++d)
      if (!c.grid.periodic[d])
        return "region 'blocked' keeps no physical boundary values between fused steps; make the grid periodic" +
               in_dimension(d) + ", or use full or shrink";
    if (!has({"bulk", "split", "streams", "resident"}, c.schedule))
      return "region 'blocked' is made for schedules bulk and split, not '" + c.schedule + "'";
  }
  return "";
}

bool in_box(const Choice& c) { return c.schedule == "box" || c.schedule == "box-overlap"; }

/// Reasons that concern a device's block in a box of the host; empty when there is none.
std::string illegal_box(const Choice& c, const AppInfo& app, const Strategy& s) {
  if (moves_device_memory(s) || s.transport == "reference")
    return "schedule '" + c.schedule +
           "' sends messages between host cells; use a strategy for those, as 'ordered/p2p'";
  if (needs_shared_fields(s) || s.transport == "auto")
    return "schedule '" + c.schedule + "' keeps fields in memory of its own; use a strategy such as 'ordered/p2p'";
  if (c.depth > 1) return "schedule '" + c.schedule + "' exchanges in every step; use --depth 1";
  if (c.box < app.radius)
    return "a box of " + std::to_string(c.box) + " layers is thinner than the stencil's reach of " +
           std::to_string(app.radius) + "; use --box " + std::to_string(app.radius) + " or more";
  const Layout layout = make_layout(c);
  for (int d = 0; d < app.dims; ++d)
    if (2 * static_cast<std::int64_t>(c.box) >= layout.smallest_extent(d))
      return "a box of " + std::to_string(c.box) + " layers leaves no block for the device" + in_dimension(d) +
             ", where the smallest rank has " + std::to_string(layout.smallest_extent(d)) +
             " cells; use a thinner box, more cells or fewer ranks";
  return "";
}

bool by_faces(const Choice& c) { return c.schedule == "faces" || c.schedule == "faces-overlap"; }

/// Reasons that concern kernels of faces, which find halos in messages; empty when there is none.
std::string illegal_faces(const Choice& c, const AppInfo& app, const Strategy& s) {
  if (s.transport != "staged" && s.transport != "aware")
    return "schedule '" + c.schedule + "' reads halos where messages have arrived, and transport '" + s.transport +
           "' has no such place; use staged or aware";
  if (c.depth > 1) return "schedule '" + c.schedule + "' exchanges in every step; use --depth 1";
  if (app.box_stencil && s.pattern == Pattern::ordered && c.ranks > 1)
    return "schedule '" + c.schedule +
           "' packs nothing between rounds, and for a stencil that reads corners an ordered pattern's later messages "
           "hold cells of earlier ones; use 'direct/" +
           s.transport + "'";
  return "";
}

/// Reasons that concern where the fields live; empty when there is none.
std::string illegal_device(const Choice& c, const AppInfo& app, const Strategy& s) {
  const bool streams = in_box(c) || by_faces(c) || c.schedule == "streams" || c.schedule == "resident";
  if (c.device.empty()) {
    if (c.graph) return "graphs are captured of a device's work; add --device, or drop --graph";
    if (streams) return "schedule '" + c.schedule + "' is for devices; add --device, or use --schedule bulk or split";
    if (moves_device_memory(s))
      return "transport '" + s.transport + "' moves fields of a device; add --device, or use 'ordered/p2p'";
    return "";
  }
  if (c.graph && (c.ranks > 1 || in_box(c)))
    return "a graph takes the host out of a step, and here that has messages or walls to see to; use --ranks 1 with "
           "schedule bulk, streams or resident, or drop --graph";
  if (app.device_levels == 0) return "app '" + app.name + "' has no kernels for devices; drop --device";
  if (in_box(c)) return illegal_box(c, app, s);
  if (!moves_device_memory(s))
    return "strategy '" + c.strategy +
           "' moves fields in host memory; with --device use 'ordered/staged', "
           "'ordered/aware' or 'ordered/ipc'";
  if (!streams && c.schedule != "bulk")
    return "schedule '" + c.schedule + "' is for CPU threads; with --device use bulk, streams or resident";
  if (c.schedule == "resident" && c.ranks > 1)
    return "schedule 'resident' keeps the whole grid on one device and exchanges nothing; use --ranks 1, or bulk or "
           "streams";
  if (c.threads > 1) return "schedule '" + c.schedule + "' computes on the device alone; use --threads 1";
  if (by_faces(c)) return illegal_faces(c, app, s);
  if (c.region == "blocked" && app.device_levels == 1)
    return "region 'blocked' fuses time steps on chip, and app '" + c.app +
           "' has no such kernel for devices; use full or shrink";
  if (c.region == "blocked" && c.depth > app.device_levels)
    return "region 'blocked' of app '" + c.app + "' fuses at most " + std::to_string(app.device_levels) +
           " time steps on a device, not " + std::to_string(c.depth) +
           "; use a smaller depth, or region full or shrink";
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
    return "app 'poisson2d' has a square of 8 I + 7 inner cells per side; use --interlines I, or --cells 7, 15, 23, "
           "...";
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
  if (!has({"", "cuda", "hip", "host"}, c.device)) return unknown_name("device", c.device, {"cuda", "hip", "host"});
  if (c.threads < 1) return "threads " + std::to_string(c.threads) + " is not possible; use 1 or more";
  return "";
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"bulk",     "split",         "interleaved", "comm-thread",
                                              "pipeline", "resident",      "box",         "box-overlap",
                                              "faces",    "faces-overlap", "streams"};
  return names;
}

const std::vector<std::string>& region_names() {
  static const std::vector<std::string> names{"full", "shrink", "blocked"};
  return names;
}

const std::vector<AppInfo>& app_infos() {
  static const std::vector<AppInfo> apps{
      {"advection3d", 3, 1, true, 53, "white", {"dense", "separable"}, {"f64"}, {}},
      {"laplace2d", 2, 1, false, 9, "valen", {"star"}, {"f64", "f32"}, {"star"}, 8},
      {"laplace3d", 3, 1, false, 13, "white", {"star"}, {"f64", "f32"}, {}, 4},
      {"poisson2d", 2, 1, false, 4, "lines", {"jacobi", "gauss-seidel"}, {"f64"}, {}, 0},
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

bool messages_on_device(const Choice& choice) { return !choice.device.empty() && !in_box(choice); }

ScheduleOptions schedule_options(const Choice& choice) {
  const Strategy strategy = parse_strategy(choice.strategy);
  ScheduleOptions options;
  options.depth = options.steps = choice.depth;
  options.region = choice.region == "shrink"    ? DeepRegion::shrink
                   : choice.region == "blocked" ? DeepRegion::blocked
                                                : DeepRegion::full;
  options.sharing = choice.sharing == "dynamic" ? Sharing::dynamic : Sharing::guided;
  options.collective_rounds = collective_rounds(strategy);
  options.device = messages_on_device(choice);
  options.staged = strategy.transport == "staged";
  options.box = choice.box;
  return options;
}

std::vector<int> emulated_nodes(int ranks, int nodes, const std::string& placement) {
  const std::vector<std::string> placements{"block", "round-robin"};
  if (!has(placements, placement)) throw UsageError(unknown_name("placement", placement, placements));
  if (nodes < 0 || nodes > ranks)
    throw UsageError(std::to_string(ranks) + " rank(s) cannot be split into " + std::to_string(nodes) +
                     " nodes; use 1 to " + std::to_string(ranks) + " nodes, or 0 for the real ones");
  std::vector<int> node_of;
  for (int r = 0; r < ranks && nodes > 0; ++r)
    node_of.push_back(placement == "block" ? static_cast<int>(static_cast<std::int64_t>(r) * nodes / ranks)
                                           : r % nodes);
  return node_of;
}

std::string illegal(const Choice& choice) {
  try {
    const AppInfo& app = find_app(choice.app);
    if (auto reason = illegal_names(choice, app); !reason.empty()) return reason;
    const Strategy strategy = parse_strategy(choice.strategy);
    if (auto reason = illegal_combination(choice, app, strategy); !reason.empty()) return reason;
    if (auto reason = illegal_device(choice, app, strategy); !reason.empty()) return reason;
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
