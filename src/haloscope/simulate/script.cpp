#include "haloscope/simulate/script.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope::simulate {

namespace {

/// Place of every operation in its lane.
std::vector<int> places_of(const Program& program) {
  std::vector<int> place;
  int count[lane_count] = {};
  for (const Op& op : program.ops) place.push_back(count[static_cast<int>(op.lane)]++);
  return place;
}

bool has_messages(OpKind kind) {
  return kind == OpKind::post || kind == OpKind::pack || kind == OpKind::send || kind == OpKind::wait ||
         kind == OpKind::unpack || kind == OpKind::complete;
}

/// What an operation beside a device waits for, lane by lane.
Needs needs_by_lane(const Program& program, const std::vector<int>& place, const Op& op) {
  Needs needs{};
  for (const std::int32_t before : op.after) {
    auto& needed = needs[static_cast<std::size_t>(program.ops[static_cast<std::size_t>(before)].lane)];
    needed = std::max(needed, place[static_cast<std::size_t>(before)] + 1);
  }
  return needs;
}

/// The comm lane runs in order by itself, so what counts of `after` is the other lane, and that nothing comes later.
int needs_of(const Program& program, const std::vector<int>& place, std::size_t index) {
  const Op& op = program.ops[index];
  int needs = 0;
  for (const std::int32_t before : op.after) {
    if (before < 0 || before >= static_cast<std::int32_t>(program.ops.size()))
      throw UsageError("operation " + std::to_string(index) + " waits for one that its program does not have");
    if (program.ops[before].lane != op.lane)
      needs = std::max(needs, place[before] + 1);
    else if (place[before] >= place[index])
      throw UsageError("operation " + std::to_string(index) + " waits for a later one of its own lane");
  }
  return needs;
}

void add_messages(Script& script, const std::vector<int>& set, Step& step) {
  step.first = static_cast<std::int32_t>(script.messages.size());
  step.count = static_cast<std::int32_t>(set.size());
  const bool out = step.kind == OpKind::send || step.kind == OpKind::complete || step.kind == OpKind::pack;
  for (const int m : set) {
    if (m < 0 || m >= static_cast<int>(script.routes.size()) || script.routes[m].out != out)
      throw UsageError("a program uses message " + std::to_string(m) + ", which its plan does not have that way");
    script.messages.push_back(m);
  }
}

Lanes lanes_of(Script& script, const Program& program, const OpSeconds* seconds, bool comm_thread) {
  Lanes lanes;
  lanes.comm_thread = comm_thread && program.comm_thread;
  lanes.device = program.device;
  const std::vector<int> place = places_of(program);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    Step step{op.kind, seconds[i], needs_of(program, place, i)};
    for (double s : {step.cost.busy, step.cost.idle, step.cost.seconds})
      if (!std::isfinite(s) || s < 0) throw UsageError("an operation takes negative seconds, or no number of them");
    if (has_messages(op.kind)) add_messages(script, program.sets.at(op.target), step);
    (on_device(op.lane)      ? lanes.streams[static_cast<std::size_t>(stream_of(op.lane))]
     : op.lane == Lane::comm ? lanes.comm
                             : lanes.main)
        .push_back(step);
    if (program.device) lanes.needs[static_cast<std::size_t>(op.lane)].push_back(needs_by_lane(program, place, op));
  }
  return lanes;
}

void add_routes(Script& script, const Layout& layout, const RankClass& given, const Network& network) {
  const auto from = layout.coords(given.plan->rank);
  for (std::size_t m = 0; m < given.plan->messages.size(); ++m) {
    const Message& message = given.plan->messages[m];
    const auto to = layout.coords(message.peer);
    Route route;
    route.out = message.out;
    route.box = message.out ? script.outgoing++ : script.incoming++;
    route.tag = message.tag;
    route.round = message.round;
    route.bytes = message.bytes;
    for (int d = 0; d < 3; ++d) route.offset[d] = (to[d] - from[d] + layout.ranks()[d]) % layout.ranks()[d];
    const double change = given.flight_change.empty() ? 0.0 : given.flight_change[m];
    for (int where = 0; where < places; ++where)
      route.flights[where] = flight(network.classes[where], message.bytes, change);
    script.routes.push_back(route);
  }
}

}  // namespace

Script make_script(const Layout& layout, const RankClass& given, const Network& network) {
  if (!given.plan || given.body.empty()) throw UsageError("a class of ranks needs a plan and a program to repeat");
  if (!given.flight_change.empty() && given.flight_change.size() != given.plan->messages.size())
    throw UsageError("a class of ranks needs one change of flight per message of its plan, or none");
  std::vector<const Program*> programs = given.opening;
  programs.insert(programs.end(), given.body.begin(), given.body.end());
  programs.insert(programs.end(), given.closing.begin(), given.closing.end());
  std::size_t ops = 0;
  for (const Program* program : programs) ops += program->ops.size();
  if (ops != given.seconds.size())
    throw UsageError(std::to_string(given.seconds.size()) + " prices for " + std::to_string(ops) +
                     " operations; give one per operation");
  for (double s : {given.hand_s, given.notice_s})
    if (!std::isfinite(s) || s < 0)
      throw UsageError("a device takes negative seconds to hand work to, or no number of them");
  const bool device = given.body.front()->device;
  for (const Program* program : programs)
    if (program->device != device)
      throw UsageError("some programs of a class of ranks have a device and some have none");
  Script script;
  script.opening = static_cast<int>(given.opening.size());
  script.body = static_cast<int>(given.body.size());
  script.hand_s = given.hand_s;
  script.notice_s = given.notice_s;
  add_routes(script, layout, given, network);
  const OpSeconds* seconds = given.seconds.data();
  for (const Program* program : programs) {
    script.programs.push_back(lanes_of(script, *program, seconds, given.comm_thread));
    seconds += program->ops.size();
  }
  return script;
}

}  // namespace haloscope::simulate
