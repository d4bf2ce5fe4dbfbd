#include "haloscope/model/costed_candidate.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "haloscope/error.hpp"
#include "haloscope/model/network.hpp"
#include "haloscope/simulate/simulator.hpp"

namespace haloscope::model {

namespace {

constexpr std::size_t slowest_classes =
    32;  // simulated together with their peers; faster ones do not determine the speed
constexpr std::size_t kept_moves = 4;

/// Places ranks on the nodes that a choice splits them over; those nodes are the profile's.
RankPlaces place_on(const std::vector<int>& node, int sockets, int per_socket) {
  RankPlaces found;
  std::map<int, int> local;
  for (const int n : node) {
    found.node.push_back(n);
    found.socket.push_back(socket_number({n, std::min(local[n]++ / per_socket, sockets - 1)}, sockets));
  }
  return found;
}

/// The options that schedules read.
auto values_of(const ScheduleOptions& o) {
  return std::tuple(o.depth, o.steps, o.substeps, o.tiles, o.sharing, o.barrier, o.collective_rounds, o.series,
                    o.device, o.staged, o.signals, o.walls, o.pack_first, o.last, o.slots, o.flips);
}

bool is_same(const std::vector<ScheduleOptions>& a, const std::vector<ScheduleOptions>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return values_of(x) == values_of(y); });
}

/// The exchanges of all stages.
std::vector<ExchangeSpec> specs_of(const Candidate& candidate) {
  std::vector<ExchangeSpec> specs;
  for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage)
    specs.push_back(exchange_spec(candidate, stage));
  return specs;
}

/// Returns the largest part of a round's messages that one operation of a program sends.
double at_once_of(const Program& program, const Plan& plan) {
  double most = 0;
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::send) continue;
    const std::vector<int>& sent = program.sets[static_cast<std::size_t>(op.target)];
    if (sent.empty()) continue;
    const int round = plan.messages[static_cast<std::size_t>(sent.front())].round;
    const auto of_round = std::count_if(plan.messages.begin(), plan.messages.end(),
                                        [&](const Message& m) { return m.out && m.round == round; });
    most = std::max(most, static_cast<double>(sent.size()) / static_cast<double>(of_round));
  }
  return most > 0 ? most : 1.0;
}

}  // namespace

std::shared_ptr<const ExchangeSet> PlanCache::find_moves(const Layout& layout, std::vector<ExchangeSpec> specs) {
  for (const auto& known : moves_)
    if (known->specs == specs && known->layout == layout) return known;
  if (moves_.size() == kept_moves) {
    const auto oldest = moves_.front();
    std::erase_if(programs_, [&](const Programs& known) { return known.moves == oldest; });
    std::erase_if(classes_, [&](const Classes& known) { return known.moves == oldest; });
    moves_.erase(moves_.begin());
  }
  Kinds kinds = kinds_of(layout, specs);
  moves_.push_back(std::make_shared<const ExchangeSet>(ExchangeSet{layout, std::move(specs), std::move(kinds)}));
  return moves_.back();
}

std::shared_ptr<const std::vector<RankPrograms>> PlanCache::find_programs(
    const std::shared_ptr<const ExchangeSet>& moves, const Schedule& schedule,
    const std::vector<ScheduleOptions>& options, const std::function<std::vector<RankPrograms>()>& make) {
  for (const Programs& known : programs_)
    if (known.moves == moves && known.schedule == &schedule && is_same(known.options, options)) return known.made;
  programs_.push_back({moves, &schedule, options, std::make_shared<const std::vector<RankPrograms>>(make())});
  return programs_.back().made;
}

std::shared_ptr<const std::vector<RankClass>> PlanCache::find_classes(
    const std::shared_ptr<const ExchangeSet>& moves, const std::shared_ptr<const RankMapping>& placed, double at_once,
    const std::function<std::vector<RankClass>()>& make) {
  for (const Classes& known : classes_)
    if (known.moves == moves && known.placed == placed && known.at_once == at_once) return known.made;
  classes_.push_back({moves, placed, at_once, std::make_shared<const std::vector<RankClass>>(make())});
  return classes_.back().made;
}

RankMapping place_choice(const Choice& choice, const Profile& profile, const Setting& setting) {
  const int most = profile.cores_per_socket, cores = setting.active == all_cores ? most : setting.active;
  if (cores < 1 || cores > most)
    throw UsageError(std::to_string(cores) + " cores of a socket cannot be in use where it has " +
                     std::to_string(most) + "; choose 1 to " + std::to_string(most));
  const int per_socket = std::max(1, cores / std::max(1, choice.threads));
  RankMapping placed;
  if (choice.threads > most)
    placed.notes.push_back(std::to_string(choice.threads) + " threads per rank on sockets of " + std::to_string(most) +
                           " cores");
  const std::vector<int> emulated = emulated_nodes(choice.ranks, choice.nodes, choice.placement);
  placed.places = choice.nodes > 0 && choice.nodes <= profile.nodes && setting.placement != "custom"
                      ? place_on(emulated, profile.sockets_per_node, per_socket)
                      : place_ranks(setting.placement, choice.ranks, profile.sockets_per_node, per_socket, per_socket,
                                    setting.custom);
  placed.nodes = placed.places.nodes();
  if (placed.nodes > profile.nodes)
    placed.notes.push_back(std::to_string(placed.nodes) + " nodes are needed, the profile's machine has " +
                           std::to_string(profile.nodes));
  placed.node = choice.nodes > 0 ? emulated : placed.places.node;
  return placed;
}

Choice on_nodes(Choice choice, const RankMapping& placed) {
  if (choice.nodes == 0) choice.nodes = placed.nodes;
  return choice;
}

Candidate legal(const Choice& choice, const RankMapping& placed) {
  Candidate candidate(choice, placed.sites());
  if (const std::string reason = illegal(candidate); !reason.empty()) throw UsageError(reason);
  return candidate;
}

CostedCandidate::CostedCandidate(const Candidate& like, const Profile& of, const Setting& how, const SweepNames& sweeps,
                                 PlanCache& shared, std::shared_ptr<const RankMapping> where)
    : choice(like.choice),
      candidate(choice, like),
      moves_(shared.find_moves(candidate.layout, specs_of(candidate))),
      profile(of),
      setting(how),
      names(sweeps),
      prices(of, candidate, sweeps),
      notes(where->notes),
      placed(std::move(where)) {
  const int stages = static_cast<int>(candidate.step.stages.size());
  std::vector<ScheduleOptions> options;
  bool measured = profile.overlap.measured;
  for (int stage = 0; stage < stages; ++stage) {
    options.push_back(schedule_options(candidate, stage));
    const auto own = profile.overlap.held_of.find(transports_of(candidate.strategy(stage))[0]);
    held_of_stage_.push_back(own != profile.overlap.held_of.end() ? &own->second
                             : profile.overlap.held               ? &*profile.overlap.held
                                                                  : nullptr);
    measured = measured || (held_of_stage_.back() && !held_of_stage_.back()->empty());
  }
  programs_ = shared.find_programs(moves_, *choice.schedule, options, [&] {
    std::vector<RankPrograms> made;
    for (const Kind& kind : kinds()) made.push_back(make_programs(kind, options));
    return made;
  });
  classes_ = shared.find_classes(moves_, placed, at_once(), [&] {
    return classes_of(kinds(), placed->places, profile, at_once(), placed->node, false);
  });
  steps = programs().front().steps;
  const auto& by_schedule = profile.overlap.efficiency;
  if (const auto found = by_schedule.find(choice.schedule->name); found != by_schedule.end())
    efficiency = found->second;
  if (!measured && choice.schedule->name != "bulk")
    notes.push_back(
        "overlap not measured: messages between nodes are assumed to travel on their own, those inside nodes except "
        "for "
        "their bytes, which the receiver copies");
  if (choice.device.empty()) return;
  on_node_.resize(static_cast<std::size_t>(*std::max_element(placed->places.node.begin(), placed->places.node.end())) +
                  1);
  for (const int n : placed->places.node) ++on_node_[static_cast<std::size_t>(n)];
}

RankPrograms CostedCandidate::make_programs(const Kind& kind, const std::vector<ScheduleOptions>& options) const {
  const bool in_place = choice.schedule->in_place;
  RankPrograms made;
  std::vector<std::vector<std::shared_ptr<const PlannedProgram>>> by_stage;
  const auto make = [&](int stage, Series series) {
    ScheduleOptions own = options[static_cast<std::size_t>(stage)];
    own.series = series;
    const Plan& plan = kind.plans[static_cast<std::size_t>(stage)];
    Program program = choice.schedule->make(candidate.step.stages[static_cast<std::size_t>(stage)], plan, own);
    auto copies = traffic_of_copies(program, plan);
    return PlannedProgram{stage, std::move(program), std::move(copies)};
  };
  for (int stage = 0; stage < static_cast<int>(kind.plans.size()); ++stage) {
    auto& own = by_stage.emplace_back();
    for (const Series series : in_place ? std::vector{Series::entry, Series::body} : std::vector{Series::whole})
      own.push_back(std::make_shared<const PlannedProgram>(make(stage, series)));
    if (in_place) made.opening = make(stage, Series::opening);
  }
  for (const StageGroup& group : groups_of(candidate.step)) {
    const int times = candidate.step.stages[static_cast<std::size_t>(group.first)].repeats > 0 ? setting.repeats : 1;
    for (int i = 0; i < times; ++i)
      for (int stage = group.first; stage < group.end; ++stage)
        for (const auto& program : by_stage[static_cast<std::size_t>(stage)]) made.body.push_back(program);
  }
  if (kind.plans.size() == 1 && !has_loops(candidate.step)) {
    made.steps = 0;
    for (const auto& program : made.body) made.steps += program->program.steps;
  }
  made.at_once = 0;
  for (const auto& program : made.body)
    made.at_once =
        std::max(made.at_once, at_once_of(program->program, kind.plans[static_cast<std::size_t>(program->stage)]));
  return made;
}

double CostedCandidate::at_once() const {
  double most = 0;
  for (const RankPrograms& of_kind : programs()) most = std::max(most, of_kind.at_once);
  return most;
}

std::vector<RankClass> CostedCandidate::single_ranks() const {
  return classes_of(kinds(), placed->places, profile, at_once(), placed->node, true);
}

double CostedCandidate::held(int stage, Locality near, double flight) const {
  if (const auto* table = held_of_stage_[static_cast<std::size_t>(stage)])
    if (const auto found = table->find(near); found != table->end()) return found->second;
  if (near == Locality::network || flight <= 0) return 0;
  return std::max(0.0, 1 - message_time(profile, near, 0) / flight);
}

int CostedCandidate::ranks_on_device(int rank) const {
  if (choice.device.empty()) return 1;
  const int ranks = on_node_[static_cast<std::size_t>(placed->places.node[static_cast<std::size_t>(rank)])];
  const int devices = profile.device_cost().per_node;
  return (ranks + devices - 1) / devices;
}

RankLocation CostedCandidate::where(int kind, int stage, int ranks_on_socket, int sharing,
                                    const std::vector<double>& flights, const std::vector<Locality>& near,
                                    const std::vector<char>& far) const {
  const Kind& of = kinds()[static_cast<std::size_t>(kind)];
  const auto first = static_cast<std::size_t>(of.first_message[static_cast<std::size_t>(stage)]);
  const std::size_t count = of.traffic_of(stage).size();
  RankLocation where{
      ranks_on_socket, static_cast<double>(sharing), {far.data() + first, count}, {flights.data() + first, count}, {}};
  for (std::size_t m = first; m < first + count; ++m) where.held.push_back(held(stage, near[m], flights[m]));
  return where;
}

std::vector<Flight> CostedCandidate::flights(int kind, const UnitCosts& with,
                                             const std::vector<RankLocation>& wheres) const {
  const Kind& of = kinds()[static_cast<std::size_t>(kind)];
  std::vector<Flight> all;
  for (std::size_t stage = 0; stage < of.plans.size(); ++stage) {
    const auto own = price_flights(of.plans[stage], of.traffic_of(static_cast<int>(stage)), with.stages[stage],
                                   wheres[stage], profile.overlap.rendezvous_from_bytes);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

void CostedCandidate::price(int kind, const PlannedProgram& planned, const UnitCosts& with,
                            const std::vector<RankLocation>& wheres, std::vector<TimedOp>& actions) const {
  const Kind& of = kinds()[static_cast<std::size_t>(kind)];
  const auto stage = static_cast<std::size_t>(planned.stage);
  price_program(
      {&planned.program, &of.plans[stage], of.traffic_of(planned.stage), planned.copies, of.first_message[stage]},
      with.stages[stage], wheres[stage], actions);
}

TimedOp CostedCandidate::meeting(const UnitCosts& with) const {
  TimedOp action;
  action.deed = Deed::barrier;
  action.lane = Lane::comm;
  action.parts.add(Term::reduction, setting.reductions * steps * allreduce_time(with.profile, choice.ranks));
  return action;
}

Timeline CostedCandidate::track(const RankClass& c, const UnitCosts& with, const std::vector<double>& class_flights,
                                const Sources& sources) const {
  const RankPrograms& own = programs()[static_cast<std::size_t>(c.kind)];
  const std::vector<double> times = with.flight_times(c.near, class_flights);
  std::vector<RankLocation> wheres;
  for (int stage = 0; stage < static_cast<int>(candidate.step.stages.size()); ++stage)
    wheres.push_back(where(c.kind, stage, c.ranks_on_socket, ranks_on_device(c.rank), times, c.near, c.far));
  Timeline track;
  for (const auto& program : own.body) {
    price(c.kind, *program, with, wheres, track.body);
    track.ends.push_back(static_cast<int>(track.body.size()));
  }
  if (setting.reductions > 0) {
    track.body.push_back(meeting(with));
    track.ends.push_back(static_cast<int>(track.body.size()));
  }
  if (own.opening) price(c.kind, *own.opening, with, wheres, track.opening);
  track.flights = flights(c.kind, with, wheres);
  track.sources = sources;
  track.comm_thread = own.body.front()->program.comm_thread && choice.threads > 1;
  track.efficiency = efficiency;
  track.notice_s = with.device ? with.device->notice_s : 0.0;
  return track;
}

std::vector<RankClass> CostedCandidate::slowest(const UnitCosts& with) const {
  const std::vector<RankClass>& found = classes();
  if (found.size() <= slowest_classes) return found;
  std::map<std::tuple<int, int, std::vector<char>>, double> known;
  std::vector<double> alone;
  for (const RankClass& c : found) {
    const auto [busy, is_new] = known.try_emplace({c.kind, c.ranks_on_socket, c.far}, 0.0);
    if (is_new) busy->second = track(c, with).busy();
    std::map<int, double> longest;  // flight, by round
    const Kind& kind = kinds()[static_cast<std::size_t>(c.kind)];
    for (std::size_t m = 0; m < kind.messages.size(); ++m) {
      double& most = longest[kind.messages[m].round];
      most = std::max(most, c.flights[m]);
    }
    double seconds = 0;
    for (const auto& [round, flight] : longest) seconds += flight;
    alone.push_back(busy->second + seconds);
  }
  std::vector<std::size_t> order(found.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return alone[a] > alone[b]; });
  order.resize(slowest_classes);
  std::vector<int> place(found.size(), -1);
  std::vector<std::size_t> kept;
  const auto keep = [&](std::size_t i) {
    if (place[i] >= 0) return;
    place[i] = static_cast<int>(kept.size());
    kept.push_back(i);
  };
  for (const std::size_t i : order) keep(i);
  for (const std::size_t i : order)
    for (const auto& sources : found[i].sources)
      for (const Source& source : sources) keep(static_cast<std::size_t>(source.from));
  std::vector<RankClass> result;
  for (const std::size_t i : kept) {
    RankClass& c = result.emplace_back(found[i]);
    const Kind& kind = kinds()[static_cast<std::size_t>(c.kind)];
    const Sources alike = mirrored(kind.messages);
    for (std::size_t m = 0; m < c.sources.size(); ++m) {
      auto& sources = c.sources[m];
      const bool any = !sources.empty();
      std::erase_if(sources, [&](const Source& s) { return place[static_cast<std::size_t>(s.from)] < 0; });
      for (Source& source : sources) source.from = place[static_cast<std::size_t>(source.from)];
      if (any && sources.empty()) sources = {{place[i], alike[m].front().message}};
    }
  }
  return result;
}

double CostedCandidate::alone(const RankClass& c, const UnitCosts& with) const {
  const Kind& kind = kinds()[static_cast<std::size_t>(c.kind)];
  std::vector<double> flights = c.flights;
  for (std::size_t m = 0; m < flights.size(); ++m) {
    const auto bytes = static_cast<double>(kind.messages[m].bytes);
    const double usual = std::max(message_time(profile, c.near[m], bytes), 1e-30);
    flights[m] = flights[m] * message_time(with.profile, c.near[m], bytes) / usual;
  }
  std::vector<Timeline> one;
  one.push_back(track(c, with, flights, mirrored(kind.messages)));
  try {
    return steady_state(one).front().seconds;
  } catch (const simulate::Deadlock&) {
    return one.front().busy();
  }
}

}  // namespace haloscope::model
