#include "haloscope/simulate/op_list.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope::simulate {

namespace {

/// The position of every operation in its lane.
std::vector<int> places_of(std::span<const PlacedOp> ops) {
  std::vector<int> place;
  place.reserve(ops.size());
  int count[lane_count] = {};
  for (const PlacedOp& op : ops) place.push_back(count[static_cast<int>(op.lane)]++);
  return place;
}

bool has_messages(OpKind kind) {
  return kind == OpKind::post || kind == OpKind::pack || kind == OpKind::send || kind == OpKind::wait ||
         kind == OpKind::unpack || kind == OpKind::complete;
}

/// The dependencies of an operation of a program with a device, lane by lane.
Needs needs_by_lane(std::span<const PlacedOp> ops, const std::vector<int>& place, const PlacedOp& op) {
  Needs needs{};
  for (const std::int32_t before : op.after) {
    auto& needed = needs[static_cast<std::size_t>(ops[static_cast<std::size_t>(before)].lane)];
    needed = std::max(needed, place[static_cast<std::size_t>(before)] + 1);
  }
  return needs;
}

/// The comm lane runs in order, so only the other lane's entries of `after` count; none may come later in the list.
int needs_of(std::span<const PlacedOp> ops, const std::vector<int>& place, std::size_t index) {
  const PlacedOp& op = ops[index];
  int needs = 0;
  for (const std::int32_t before : op.after) {
    if (before < 0 || before >= static_cast<std::int32_t>(ops.size()))
      throw UsageError("operation " + std::to_string(index) + " waits for one that its program does not have");
    if (ops[before].lane != op.lane)
      needs = std::max(needs, place[before] + 1);
    else if (place[before] >= place[index])
      throw UsageError("operation " + std::to_string(index) + " waits for a later one of its lane");
  }
  return needs;
}

/// @param first, count  routes of the program's plan.
void add_messages(OpList& script, const std::vector<int>& set, int first, int count, PricedOp& step) {
  step.first = static_cast<std::int32_t>(script.messages.size());
  step.count = static_cast<std::int32_t>(set.size());
  const bool out = step.kind == OpKind::send || step.kind == OpKind::complete || step.kind == OpKind::pack;
  for (const int m : set) {
    if (m < 0 || m >= count || script.routes[static_cast<std::size_t>(first + m)].out != out)
      throw UsageError("a program uses message " + std::to_string(m) + ", which its plan does not have that way");
    script.messages.push_back(first + m);
  }
}

int routes_before(const RankClass& ranks, int plan) {
  std::size_t count = 0;
  for (int p = 0; p < plan; ++p) count += ranks.plans[static_cast<std::size_t>(p)]->messages.size();
  return static_cast<int>(count);
}

bool reduces(OpKind kind) { return kind == OpKind::reduce || kind == OpKind::reduced; }

Lanes lanes_of(OpList& script, const RankClass& ranks, const RankProgram& one, const OpSeconds* seconds, int number) {
  const Program& program = *one.program;
  const int first_route = routes_before(ranks, one.plan);
  const auto routes = static_cast<int>(ranks.plans[static_cast<std::size_t>(one.plan)]->messages.size());
  std::vector<PlacedOp> ops;
  ops.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    PricedOp step{op.kind, *seconds++};
    step.number = number++;
    for (double s : {step.cost.busy, step.cost.idle, step.cost.seconds, step.cost.hand})
      if (!std::isfinite(s) || s < 0) throw UsageError("the seconds of an operation are negative or not a number");
    if (has_messages(op.kind)) add_messages(script, program.sets.at(op.target), first_route, routes, step);
    if (reduces(op.kind)) {
      step.first = one.reduction + op.target;
      if (step.first < 0 || step.first >= static_cast<std::int32_t>(ranks.reductions.size()))
        throw UsageError("a program uses reduction " + std::to_string(op.target) + ", which its class does not have");
    }
    ops.push_back({op.lane, op.after, step});
  }
  return make_lanes(ops, ranks.comm_thread && program.comm_thread, program.device);
}

void add_routes(OpList& script, const Layout& layout, const RankClass& ranks, int number, const Network& network) {
  const Plan& plan = *ranks.plans[static_cast<std::size_t>(number)];
  const auto from = layout.coords(plan.rank);
  for (const Message& message : plan.messages) {
    const auto to = layout.coords(message.peer);
    Route route;
    route.out = message.out;
    route.box = message.out ? script.outgoing++ : script.incoming++;
    route.plan = number;
    route.tag = message.tag;
    route.round = message.round;
    route.bytes = message.bytes;
    for (int d = 0; d < 3; ++d) route.offset[d] = (to[d] - from[d] + layout.ranks()[d]) % layout.ranks()[d];
    const double change = ranks.flight_change.empty() ? 0.0 : ranks.flight_change[script.routes.size()];
    for (int where = 0; where < places; ++where)
      route.flights[where] = flight(network.classes[where], message.bytes, change);
    script.routes.push_back(route);
  }
}

std::vector<RankProgram> programs_of(const RankClass& ranks) {
  std::vector<RankProgram> programs = ranks.opening;
  programs.insert(programs.end(), ranks.body.begin(), ranks.body.end());
  programs.insert(programs.end(), ranks.closing.begin(), ranks.closing.end());
  return programs;
}

void check(const RankClass& ranks, const std::vector<RankProgram>& programs) {
  if (ranks.plans.empty() || ranks.body.empty())
    throw UsageError("a class of ranks needs a plan and a program to repeat");
  const auto plans = static_cast<int>(ranks.plans.size());
  if (const int messages = routes_before(ranks, plans);
      !ranks.flight_change.empty() && ranks.flight_change.size() != static_cast<std::size_t>(messages))
    throw UsageError("a class of ranks needs one change of flight per message of its plans, or none");
  std::size_t ops = 0;
  for (const RankProgram& one : programs) {
    ops += one.program->ops.size();
    if (one.plan < 0 || one.plan >= plans || one.reduction < 0)
      throw UsageError("a program is of plan " + std::to_string(one.plan) + ", which its class does not have");
    if (one.program->device != programs.front().program->device)
      throw UsageError("some programs of a class of ranks have a device and some have none");
  }
  if (ops != ranks.seconds.size())
    throw UsageError(std::to_string(ranks.seconds.size()) + " costs for " + std::to_string(ops) +
                     " operations; give one per operation");
  std::vector<double> seconds{ranks.notice_s};
  for (const RankReduction& reduction : ranks.reductions) seconds.push_back(reduction.seconds);
  for (const double s : seconds)
    if (!std::isfinite(s) || s < 0)
      throw UsageError("the seconds of a device or a reduction are negative or not a number");
}

}  // namespace

Lanes make_lanes(std::span<const PlacedOp> ops, bool comm_thread, bool device) {
  Lanes lanes;
  lanes.comm_thread = comm_thread;
  lanes.device = device;
  const std::vector<int> place = places_of(ops);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const PlacedOp& op = ops[i];
    auto& lane = on_device(op.lane)      ? lanes.streams[static_cast<std::size_t>(stream_of(op.lane))]
                 : op.lane == Lane::comm ? lanes.comm
                                         : lanes.main;
    lane.push_back(op.op);
    lane.back().needs = needs_of(ops, place, i);
    if (device) lanes.needs[static_cast<std::size_t>(op.lane)].push_back(needs_by_lane(ops, place, op));
  }
  return lanes;
}

OpList make_op_list(const Layout& layout, const RankClass& ranks, const Network& network) {
  const std::vector<RankProgram> programs = programs_of(ranks);
  check(ranks, programs);
  OpList script;
  script.opening = static_cast<int>(ranks.opening.size());
  script.body = static_cast<int>(ranks.body.size());
  script.reductions = ranks.reductions;
  script.notice_s = ranks.notice_s;
  for (int plan = 0; plan < static_cast<int>(ranks.plans.size()); ++plan)
    add_routes(script, layout, ranks, plan, network);
  int number = 0;
  for (const RankProgram& one : programs) {
    script.programs.push_back(lanes_of(script, ranks, one, ranks.seconds.data() + number, number));
    number += static_cast<int>(one.program->ops.size());
  }
  return script;
}

}  // namespace haloscope::simulate
