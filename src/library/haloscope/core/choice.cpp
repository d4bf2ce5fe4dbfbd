#include <algorithm>

#include "haloscope/core/backend_names.hpp"
#include "haloscope/core/bounds.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/candidate.hpp"
#include "haloscope/extend/transport_traits.hpp"

namespace haloscope {

namespace {

std::string in_dimension(int d) { return std::string(" in ") + "xyz"[d]; }

std::string quoted_schedule(const Choice& c) { return "schedule '" + c.schedule->name + "'"; }

/// Returns the first reason that one of the functions finds; empty if none does.
template <class... Rule>
std::string first_reason(const Candidate& c, Rule... rules) {
  std::string reason;
  static_cast<void>(((reason = rules(c), reason.empty()) && ...));
  return reason;
}

std::string refuse_numbers(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  const struct {
    const Bound& bound;
    int value;
  } counts[]{{bound.depth, c.depth}, {bound.threads, c.threads}, {bound.tiles, c.tiles}, {bound.walls, c.walls}};
  for (const auto& [range, value] : counts) {
    const std::string start = std::string(range.name) + " " + std::to_string(value) + " is not possible; use ";
    if (value < 1) return start + "1 or more";
    if (value > range.most) return start + "at most " + std::to_string(static_cast<int>(range.most));
  }
  if (!c.device.empty() && !has(backend_names(), c.device)) return unknown_name("device", c.device, backend_names());
  return "";
}

std::string refuse_strategy(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  for (const auto& [stage, strategy] : c.stage_strategies) {
    std::vector<std::string> stages;
    for (const Stage& s : candidate.step.stages) stages.push_back(s.name);
    if (!has(stages, stage)) return unknown_name("stage of app '" + c.app + "'", stage, stages);
    if (moves_device_memory(strategy) != moves_device_memory(c.strategy) ||
        strategy.is_reference() != c.strategy.is_reference())
      return "strategy '" + to_string(strategy) + "' of stage '" + stage + "' and '" + to_string(c.strategy) +
             "' of the others move fields in different ways; use two for the same kind of memory";
  }
  for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage) {
    const Strategy& s = candidate.strategy(stage);
    if (s.is_reference() && !c.schedule->plain)
      return "strategy 'reference' is the oracle and does not support overlap; use --schedule bulk";
    if (find_traits(s.transport).inside_nodes && s.between.empty() && c.nodes > 1)
      return "transport '" + s.transport + "' does not reach from node to node, and these ranks are on " +
             std::to_string(c.nodes) + "; use '" + s.transport + "+p2p' (or another transport after the +)";
    if (s.self_first && s.pattern == Pattern::direct)
      return "pattern option 'self-first' orders rounds, and a direct pattern has only one; use 'ordered:self-first'";
  }
  return "";
}

std::string refuse_fused_steps(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  if (c.substeps != Substeps::blocked) return "";
  const App& app = candidate.app;
  const std::string fuses = "substeps 'blocked' fuse time steps on chip, and app '" + c.app + "' has no such kernel";
  if (c.device.empty() && !has(app.fused_forms, candidate.problem.form)) return fuses + "; use full or shrink";
  if (!c.device.empty() && app.device_levels == 1) return fuses + " for devices; use full or shrink";
  for (int d = 0; d < app.dims; ++d)
    if (!c.grid.periodic[d])
      return "substeps 'blocked' keep no physical boundary values between fused steps; make the grid periodic" +
             in_dimension(d) + ", or use full or shrink";
  if (!c.schedule->blocked)
    return "substeps 'blocked' are made for schedules bulk and split, not '" + c.schedule->name + "'";
  if (!c.device.empty() && c.depth > app.device_levels)
    return "substeps 'blocked' of app '" + c.app + "' fuse at most " + std::to_string(app.device_levels) +
           " time steps on a device, not " + std::to_string(c.depth) +
           "; use a smaller depth, or substeps full or shrink";
  return "";
}

std::string refuse_depth(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  if (c.depth == 1) return "";
  if (!c.schedule->deep) return quoted_schedule(c) + " exchanges in every step; use --depth 1";
  const auto refusal = [&](const std::string& reason) {
    return "--depth " + std::to_string(c.depth) + " exchanges once in several steps, and app '" + c.app + "' " +
           reason + "; use --depth 1";
  };
  if (candidate.step.stages.size() > 1) return refusal("exchanges in several stages of each");
  const Stage& stage = candidate.step.stages.front();
  if (stage.repeats > 0) return refusal("repeats a stage until its reduction ends the loop");
  for (const Reduction& reduction : stage.reductions)
    if (!reduction.last_only) return refusal("reads '" + reduction.name + "' in each");
  for (const Quantity& q : candidate.step.quantities)
    if (q.fills_edges()) return refusal("fills '" + q.name + "' beyond the grid's edges in each");
  return "";
}

std::string refuse_order_of_sweeps(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  for (const Stage& stage : candidate.step.stages)
    for (const SweepSpec& sweep : stage.sweeps) {
      if (sweep.in_place && !c.schedule->in_place)
        return "app '" + c.app + "' updates in place, line after line, which " + quoted_schedule(c) +
               " cannot do; use --schedule pipeline";
      if (sweep.in_place && c.reorder != Reorder::none)
        return "app '" + c.app + "' updates line after line in the order of ranks; use --reorder none";
      if (!sweep.in_place && c.schedule->in_place)
        return quoted_schedule(c) + " is for sweeps in place, which this form of app '" + c.app +
               "' has none of; use --schedule bulk or split";
    }
  return "";
}

/// Checks the memory space of the fields.
std::string refuse_device(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  const Schedule& schedule = *c.schedule;
  const Strategy& s = c.strategy;
  if (c.device.empty()) {
    if (c.capture) return "graphs are captured of a device's work; add --device, or drop --capture";
    if (!schedule.on_host) return quoted_schedule(c) + " is for devices; add --device, or use --schedule bulk or split";
    if (moves_device_memory(s))
      return "transport '" + s.transport + "' moves fields of a device; add --device, or use 'ordered/p2p'";
    return "";
  }
  if (c.capture && !is_one_sweep(candidate.step))
    return "--capture records a step, which app '" + c.app + "' composes anew each time; drop --capture";
  if (c.capture && c.barrier) return "--capture and --barrier cannot be combined; drop one of them";
  if (c.capture && (c.ranks > 1 || schedule.boxed))
    return "--capture needs a step with no host work; this one sends messages or computes walls; use --ranks 1 with "
           "schedule bulk, streams or resident, or drop --capture";
  if (candidate.app.device_levels == 0) return "app '" + c.app + "' has no kernels for devices; drop --device";
  if (schedule.one_sweep && !is_one_sweep(candidate.step))
    return quoted_schedule(c) + " is for apps of one sweep over one quantity, which '" + c.app +
           "' is not; with --device use bulk or streams";
  if (!schedule.on_device)
    return quoted_schedule(c) + " is for CPU threads; with --device use bulk, streams or resident";
  if (schedule.boxed) {
    if (moves_device_memory(s) || s.is_reference())
      return quoted_schedule(c) +
             " sends messages between host cells; use a strategy for host memory, such as 'ordered/p2p'";
    if (needs_shared_fields(s) || s.transport == "auto")
      return quoted_schedule(c) + " keeps fields in separate memory; use a strategy such as 'ordered/p2p'";
    return "";
  }
  if (!moves_device_memory(s))
    return "strategy '" + to_string(s) +
           "' moves fields in host memory; with --device use 'ordered/staged', 'ordered/aware', 'ordered/ipc' or "
           "'ordered/taskqueue'";
  if (c.threads > 1) return quoted_schedule(c) + " computes on the device alone; use --threads 1";
  return "";
}

std::string refuse_reductions(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  if (c.schedule->in_place) return "";  // its ranks all stop at the same step, see reduction_schemes()
  const Step& step = candidate.step;
  const bool several = step.stages.size() > 1 || has_loops(step);
  const bool early = candidate.app.ends_early && candidate.app.ends_early(candidate.problem);
  const auto keeps_one = [&](int q) { return step.quantities[q].slots < 2; };
  bool overwrites = false;
  for (const Stage& stage : step.stages)
    for (const SweepSpec& sweep : stage.sweeps)
      overwrites = overwrites || std::any_of(sweep.writes.begin(), sweep.writes.end(), keeps_one);
  const auto deferred = [&]() -> const Reduction* {
    for (const Stage& stage : step.stages)
      for (const Reduction& reduction : stage.reductions)
        if (reduction.mode == ReduceMode::deferred) return &reduction;
    return nullptr;
  }();
  if (deferred && !candidate.app.scalars.empty())
    return "the numbers of the deferred reduction '" + deferred->name + "' come after the scalars of app '" + c.app +
           "' are brought up to date; use another mode";
  if (!early || !deferred || !(several || overwrites)) return "";
  return "a deferred reduction '" + deferred->name +
         "' that ends the run needs the fields of the step before, and app '" + c.app + "' " +
         (several ? "has several stages in a step" : "overwrites them") + "; use another mode";
}

std::string refuse_pieces(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  if (c.piece < 0) return "piece " + std::to_string(c.piece) + " is not possible; use 1 or more, or 0 for even shares";
  if (c.piece > 0 && (!c.device.empty() || c.schedule->in_place))
    return "pieces are layers that threads take as they come, which " +
           (c.device.empty() ? quoted_schedule(c) : std::string("a device")) + " does not do; use --piece 0";
  return "";
}

std::string refuse_temporaries(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  if (c.temporaries == Temporaries::kept) return "";
  const std::string subject = "temporaries 'freed' ";
  if (!c.device.empty()) return subject + "are fields of the CPU; drop --device, or use temporaries 'kept'";
  const auto lives = lifetimes_of(candidate.step, c.grid.periodic);
  if (std::none_of(lives.begin(), lives.end(), [](const auto& life) { return life.has_value(); }))
    return subject + "need fields that live within a step, and app '" + c.app + "' has none; use temporaries 'kept'";
  bool shared = c.memory == MemoryKind::shared;
  for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage)
    shared = shared || needs_shared_fields(candidate.strategy(stage));
  if (shared) return subject + "are a rank's own memory, and these fields are shared; use temporaries 'kept'";
  if (c.depth > 1) return subject + "are used in each step; use --depth 1, or temporaries 'kept'";
  return "";
}

std::string refuse_of_others(const Candidate& candidate) {
  const Choice& c = candidate.choice;
  if (c.schedule->illegal)
    if (auto reason = c.schedule->illegal(candidate); !reason.empty()) return reason;
  return candidate.app.illegal ? candidate.app.illegal(candidate) : "";
}

/// Returns the quantities that the exchange of a stage moves, with their widths; at least one, possibly of width 0.
std::vector<Access> moved(const Candidate& c, int number) {
  const Stage& stage = c.step.stages[number];
  const std::vector<Widths> halos = halos_of(c.step, stage, c.choice.depth);
  std::vector<Access> found;
  for (int q = 0; q < static_cast<int>(halos.size()); ++q)
    if (const Widths& w = halos[q]; std::max({w[0], w[1], w[2]}) > 0) found.push_back({q, 0, w});
  const SweepSpec& first = stage.sweeps.front();
  if (found.empty())
    found.push_back({first.writes.empty() ? first.reads.front().quantity : first.writes.front(), 0, {}});
  return found;
}

/// Returns true if a sweep reads beyond edges and corners of the rank's block: box stencils do, and stars around
/// points that touch cells across one dimension and reach on in another.
bool reads_corners(const Step& step, const SweepSpec& sweep) {
  const auto centring = [&](int q) { return step.quantities[q].centring; };
  for (const Access& access : sweep.reads)
    for (const Centring swept : swept_centrings(sweep, step.quantities)) {
      if (!access.concerns(swept)) continue;
      int across = 0;
      for (int d = 0; d < 3; ++d) across += staggered(swept, d) > staggered(centring(access.quantity), d);
      if (across > 1 || (across == 1 && access.layers > 0)) return true;
    }
  return sweep.box_stencil;
}

Problem problem_of(const Choice& choice, const App& app) {
  if (choice.grid.dims != app.dims)
    throw UsageError("app '" + app.name + "' needs " + std::to_string(app.dims) + " numbers of cells, not " +
                     std::to_string(choice.grid.dims) + "; write --cells " +
                     (app.dims == 1   ? "X"
                      : app.dims == 2 ? "LENGTHxHEIGHT"
                                      : "XxYxZ"));
  Problem problem{choice.grid, choice.form.empty() ? app.forms.front() : choice.form, choice.real, {}};
  if (!has(app.forms, problem.form)) throw UsageError(unknown_name("form of " + app.name, problem.form, app.forms));
  if (!has(app.reals, to_word(choice.real)))
    throw UsageError(unknown_name("scalar type of " + app.name, to_word(choice.real), app.reals));
  problem.parameters = Parameters(parameters_of(app), choice.set, app.name);
  return problem;
}

}  // namespace

Candidate::Candidate(const Choice& chosen, const Sites& sites)
    : Candidate(chosen, find_app(chosen.app), [&] { return make_layout(chosen, sites); }) {}

Candidate::Candidate(const Choice& chosen, const App& own, const Layout& blocks)
    : Candidate(chosen, own, [&] { return blocks; }) {}

Candidate::Candidate(const Choice& chosen, const App& own, const std::function<Layout()>& blocks)
    : body_([&] {
        Problem found = problem_of(chosen, own);
        Step steps = step_of(own, found);
        return std::make_shared<const Body>(Body{std::move(found), std::move(steps), blocks()});
      }()),
      choice(chosen),
      app(own),
      problem(body_->problem),
      step(body_->step),
      layout(body_->layout) {}

Candidate::Candidate(const Choice& chosen, const Candidate& like)
    : body_(like.body_), choice(chosen), app(like.app), problem(like.problem), step(like.step), layout(like.layout) {}

const Strategy& Candidate::strategy(int stage) const {
  const auto own = choice.stage_strategies.find(step.stages[stage].name);
  return own == choice.stage_strategies.end() ? choice.strategy : own->second;
}

Problem problem_of(const Choice& choice) { return problem_of(choice, find_app(choice.app)); }

namespace {

/// Returns the layout with ranks in the order of their numbers.
Layout numbered_layout(const Choice& choice) {
  const App& app = find_app(choice.app);
  const std::string usual = !app.process_grid.empty() ? app.process_grid : app.dims == 2 ? "square" : "cubic";
  const std::string& rule = choice.process_grid.empty() ? usual : choice.process_grid;
  return Layout(choice.grid, process_grid(rule, choice.ranks, choice.grid));
}

/// Returns a candidate for results that do not depend on the order of ranks, which takes time to find.
Candidate without_order(const Choice& choice) {
  const App& app = find_app(choice.app);
  problem_of(choice, app);  // reports errors of cells before the process grid does
  return Candidate(choice, app, numbered_layout(choice));
}

}  // namespace

Layout make_layout(const Choice& choice, const Sites& sites) {
  const Layout layout = numbered_layout(choice);
  if (choice.reorder == Reorder::none) return layout;
  return reordered(
      layout, sites.node.empty() ? Sites{emulated_nodes(choice.ranks, choice.nodes, choice.placement), {}} : sites);
}

std::vector<int> exchanged(const Candidate& c, int stage) {
  std::vector<int> numbers;
  for (const Access& access : moved(c, stage)) numbers.push_back(access.quantity);
  return numbers;
}

ExchangeSpec exchange_spec(const Candidate& c, int stage) {
  ExchangeSpec spec;
  spec.quantities.clear();
  for (const Access& access : moved(c, stage)) {
    spec.quantities.push_back(c.step.quantities[access.quantity]);
    spec.widths.push_back({access.reach, access.reach});
  }
  const Stage& of = c.step.stages[stage];
  const std::vector<Widths> growth = growths(of, 1).front();  // a sweep beyond the block reads beyond its edges
  spec.corners =
      c.choice.depth > 1 || std::any_of(growth.begin(), growth.end(), [](const Widths& w) { return w != Widths{}; }) ||
      std::any_of(of.sweeps.begin(), of.sweeps.end(), [&](const auto& sweep) { return reads_corners(c.step, sweep); });
  if (std::all_of(spec.widths.begin(), spec.widths.end(), [&](const auto& w) { return w == spec.widths.front(); })) {
    spec.low = spec.widths.front().low;
    spec.high = spec.widths.front().high;
    spec.widths.clear();
  }
  apply(c.strategy(stage), c.layout, spec);
  return spec;
}

ExchangeSpec exchange_spec(const Choice& choice, int stage) { return exchange_spec(without_order(choice), stage); }

bool messages_on_device(const Choice& choice) { return !choice.device.empty() && !choice.schedule->boxed; }

ScheduleOptions schedule_options(const Choice& choice, int stage) {
  return schedule_options(without_order(choice), stage);
}

ScheduleOptions schedule_options(const Candidate& candidate, int stage) {
  const Choice& choice = candidate.choice;
  const Strategy& strategy = candidate.strategy(stage);
  ScheduleOptions options;
  options.depth = options.steps = choice.depth;
  options.substeps = choice.substeps;
  options.tiles = choice.tiles;
  options.sharing = choice.sharing;
  options.barrier = choice.barrier;
  options.collective_rounds = collective_rounds(strategy);
  options.device = messages_on_device(choice);
  options.staged = find_traits(strategy.transport).staged;
  options.signals = signals(strategy);
  options.walls = choice.walls;
  options.pack_first = choice.pack == Packing::first;
  options.slots = candidate.step.slots();
  options.flips = flips(candidate.step, stage);
  return options;
}

std::vector<int> emulated_nodes(int ranks, int nodes, Placement placement) {
  if (nodes < 0 || nodes > ranks)
    throw UsageError(std::to_string(ranks) + " rank(s) cannot be split into " + std::to_string(nodes) +
                     " nodes; use 1 to " + std::to_string(ranks) + " nodes, or 0 for the real ones");
  std::vector<int> node_of;
  for (int r = 0; r < ranks && nodes > 0; ++r)
    node_of.push_back(placement == Placement::block ? static_cast<int>(static_cast<std::int64_t>(r) * nodes / ranks)
                                                    : r % nodes);
  return node_of;
}

std::string illegal(const Choice& choice) {
  try {
    return illegal(without_order(choice));
  } catch (const Error& error) {
    return error.what();
  }
}

std::string refused(const Candidate& candidate) {
  return printable(first_reason(candidate, refuse_numbers, refuse_strategy, refuse_device, refuse_order_of_sweeps,
                                refuse_fused_steps, refuse_depth, refuse_reductions, refuse_pieces, refuse_temporaries,
                                refuse_of_others));
}

std::string illegal(const Candidate& candidate) {
  try {
    if (std::string reason = refused(candidate); !reason.empty()) return reason;
    for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage)
      make_plan(candidate.layout, 0, exchange_spec(candidate, stage));
    const Choice& choice = candidate.choice;
    emulated_nodes(choice.ranks, choice.nodes, choice.placement);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace haloscope
