#include "haloscope/model/simulation_input.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "haloscope/error.hpp"
#include "haloscope/model/hash.hpp"
#include "haloscope/model/network.hpp"

namespace haloscope::model {

namespace {

constexpr Locality places_apart[]{Locality::socket, Locality::node, Locality::network};  // by simulate::Where

/// True if a transport's messages cost ranks the same wherever their peers are. Measured steps correct the messages
/// inside nodes.
bool same_everywhere(const TransportCost& cost) {
  return cost.copied == Copied::no && cost.corrections.empty() && !cost.plain &&
         std::all_of(std::begin(surcharge_members), std::end(surcharge_members),
                     [&](const auto& member) { return cost.*member.second >= 0; });
}

}  // namespace

SimulationInput::SimulationInput(const CostedCandidate& of)
    : of_(of), busy_(of.placed->places.active()), class_of_(of.placed->node.size()) {
  for (const StageUnitCosts& stage : of.prices.stages)
    alike_ = alike_ && stage.surcharges[0] == stage.surcharges[1] && same_everywhere(*stage.surcharges[0]);
  for (std::size_t k = 0; k < of.kinds().size(); ++k) {
    const Kind& kind = of.kinds()[k];
    std::unordered_map<std::uint64_t, std::int32_t> known;
    for (std::size_t i = 0; i < kind.members.size(); ++i) {
      const auto [at, is_new] = known.try_emplace(key_of(kind, i), static_cast<std::int32_t>(actors_.size()));
      if (is_new) actors_.push_back(price(static_cast<int>(k), i));
      class_of_[static_cast<std::size_t>(kind.members[i])] = at->second;
    }
  }
}

bool SimulationInput::has_comm_thread() const {
  return of_.programs().front().body.front()->program.comm_thread && of_.choice.threads > 1;
}

/// The same for members with equal costs; the positions of peers count if the transport's costs depend on them.
std::uint64_t SimulationInput::key_of(const Kind& kind, std::size_t member) const {
  const int rank = kind.members[member];
  std::uint64_t key =
      static_cast<std::uint64_t>(busy_[static_cast<std::size_t>(rank)]) +
      (static_cast<std::uint64_t>(of_.choice.ranks) + 1) * static_cast<std::uint64_t>(of_.ranks_on_device(rank));
  if (alike_) return key;
  Hash hash;
  hash.add(key);
  for (std::size_t m = 0; m < kind.messages.size(); ++m) {
    const int peer = kind.peer(member, m);
    const bool far =
        of_.placed->node[static_cast<std::size_t>(rank)] != of_.placed->node[static_cast<std::size_t>(peer)];
    hash.add(2 * static_cast<std::uint64_t>(nearness(of_.placed->places, rank, peer)) + far);
  }
  return hash.take();
}

Actors SimulationInput::price(int number, std::size_t member) const {
  const Kind& kind = of_.kinds()[static_cast<std::size_t>(number)];
  const RankPrograms& own = of_.programs()[static_cast<std::size_t>(number)];
  const int rank = kind.members[member];
  std::vector<Locality> near;
  std::vector<char> far;
  std::vector<double> alone;
  for (std::size_t m = 0; m < kind.messages.size(); ++m) {
    const int peer = kind.peer(member, m);
    near.push_back(nearness(of_.placed->places, rank, peer));
    far.push_back(of_.placed->node[static_cast<std::size_t>(rank)] != of_.placed->node[static_cast<std::size_t>(peer)]);
    alone.push_back(message_time(of_.profile, near.back(), static_cast<double>(kind.messages[m].bytes)));
  }
  const std::vector<double> travel = of_.prices.flight_times(near, alone);
  std::vector<RankLocation> wheres;
  for (int stage = 0; stage < static_cast<int>(kind.plans.size()); ++stage)
    wheres.push_back(
        of_.where(number, stage, busy_[static_cast<std::size_t>(rank)], of_.ranks_on_device(rank), travel, near, far));
  Actors actors{number, rank, {}, {}, {}, {}};
  const std::vector<Flight> flights = of_.flights(number, of_.prices, wheres);
  const Sources alike = mirrored(kind.messages);  // assumes that incoming flights change as the opposite outgoing ones
  for (std::size_t m = 0; m < flights.size(); ++m) {
    const std::size_t out = kind.messages[m].out ? m : static_cast<std::size_t>(alike[m].front().message);
    actors.flight_change.push_back(flights[out].seconds - alone[out]);
  }
  const auto add = [&](const PlannedProgram& planned) {
    std::vector<TimedOp> actions;
    of_.price(number, planned, of_.prices, wheres, actions);
    actors.programs.push_back(planned.program);
    actors.stages.push_back(planned.stage);
    for (const TimedOp& action : actions) actors.seconds.push_back(action.cost());
  };
  if (own.opening) add(*own.opening);
  for (const auto& program : own.body) add(*program);
  if (of_.setting.reductions > 0) meet(actors);
  return actors;
}

/// Ends a step with the setting's all-reduces, in a separate program.
void SimulationInput::meet(Actors& actors) const {
  Program program;
  program.comm_thread = actors.programs.back().comm_thread;
  program.device = actors.programs.back().device;
  Op& op = program.ops.emplace_back();
  op.kind = OpKind::barrier;
  op.lane = Lane::comm;
  actors.programs.push_back(std::move(program));
  actors.stages.push_back(actors.stages.back());
  actors.seconds.push_back(of_.meeting(of_.prices).cost());
}

std::vector<std::string> SimulationInput::outside() const {
  static const char* const labels[]{"message bytes (socket)", "message bytes (node)", "message bytes (network)"};
  for (std::size_t place = 0; place < std::size(places_apart); ++place) {
    std::set<std::int64_t> sizes;
    for (const Kind& kind : of_.kinds())
      for (std::size_t i = 0; i < kind.members.size(); ++i)
        for (std::size_t m = 0; m < kind.messages.size(); ++m)
          if (nearness(of_.placed->places, kind.members[i], kind.peer(i, m)) == places_apart[place])
            sizes.insert(kind.messages[m].bytes);
    if (sizes.empty()) continue;
    const Segments& law = of_.profile.messages(places_apart[place]).segments;
    for (const std::int64_t size : sizes)
      of_.prices.range.check(labels[place], static_cast<double>(size), law.front().start, law.back().end);
  }
  return of_.prices.range.texts();
}

/// Segments of a locality, cut where messages need a rendezvous, overheads subtracted.
simulate::NetworkClass SimulationInput::network_class(Locality near, const MessageOverheads& o) const {
  const Segments& law = of_.profile.messages(near).segments;
  const double eager = of_.profile.overlap.rendezvous_from_bytes;
  std::set<double> cuts;
  for (const Segment& segment : law) cuts.insert(segment.start);
  if (std::isfinite(eager)) cuts.insert(eager);
  simulate::NetworkClass found;
  found.segments.clear();
  for (const double start : cuts) {
    const Segment& s = segment_at(law, start);
    if (2 * o.overhead_s > s.fixed)
      throw UsageError("an overhead of " + shown(o.overhead_s) + " s at both ends is more than the latency of " +
                       shown(s.fixed) + " s between ranks of class " + to_string(near) +
                       ", which it is a part of; use at most " + shown(s.fixed / 2));
    // Inside a node the seconds beyond the latency of no bytes are receiver-side; of the first stage: all stages share
    // the network.
    const double held_latency = of_.held(0, near, s.fixed);
    const double held_per_byte = of_.held(0, near, infinity);
    found.segments.push_back({start, s.fixed - 2 * o.overhead_s, s.slope, o.overhead_s, o.overhead_s, o.gap_s,
                              held_latency, held_per_byte, start >= eager});
  }
  const Contention contended = contention(of_.profile, near);
  found.shared = contended.shared;
  found.duplex = contended.duplex;
  found.overlaps_s = contended.overlaps_s;
  return found;
}

std::vector<simulate::RankReduction> SimulationInput::reductions() const {
  const bool reduces = std::any_of(actors_.begin(), actors_.end(), [](const Actors& actors) {
    return std::any_of(actors.programs.begin(), actors.programs.end(), [](const Program& program) {
      return std::any_of(program.ops.begin(), program.ops.end(),
                         [](const Op& op) { return op.kind == OpKind::reduce; });
    });
  });
  std::vector<simulate::RankReduction> found;
  for (const StageUnitCosts& stage : of_.prices.stages) {
    const bool meets = stage.meets && reduces;  // ranks of a pipeline never meet
    for (std::size_t number = 0; number < stage.waits.size(); ++number)
      found.push_back({meets ? of_.prices.reduction_s(stage.first_reduction + static_cast<int>(number)) : 0.0,
                       meets && stage.waits[number]});
  }
  return found;
}

simulate::RankClass SimulationInput::rank_class(const Actors& actors,
                                                const std::vector<simulate::RankReduction>& meetings) const {
  simulate::RankClass found;
  for (const Plan& plan : of_.kinds()[static_cast<std::size_t>(actors.kind)].plans) found.plans.push_back(&plan);
  for (std::size_t p = 0; p < actors.programs.size(); ++p) {
    const int stage = actors.stages[p];
    const int first_reduction = of_.prices.stages[static_cast<std::size_t>(stage)].first_reduction;
    (p == 0 && has_opening() ? found.opening : found.body).push_back({&actors.programs[p], stage, first_reduction});
  }
  found.reductions = meetings;
  found.seconds = actors.seconds;
  found.flight_change = actors.flight_change;
  found.comm_thread = has_comm_thread();
  found.notice_s = of_.prices.device ? of_.prices.device->notice_s : 0.0;
  return found;
}

std::unique_ptr<simulate::Simulator> SimulationInput::make_simulator(const MessageOverheads& overheads) const {
  simulate::Network network;
  for (std::size_t place = 0; place < std::size(places_apart); ++place)
    network.classes[place] = network_class(places_apart[place], overheads);
  network.injection_bytes_per_s = of_.profile.network->injection_bytes_per_s;
  const auto meetings = reductions();
  std::vector<simulate::RankClass> classes;
  for (const Actors& actors : actors_) classes.push_back(rank_class(actors, meetings));
  const RankPlaces& places = of_.placed->places;
  return std::make_unique<simulate::Simulator>(
      of_.candidate.layout, network, std::vector<std::int32_t>(places.node.begin(), places.node.end()),
      std::vector<std::int32_t>(places.socket.begin(), places.socket.end()), classes, class_of_);
}

}  // namespace haloscope::model
