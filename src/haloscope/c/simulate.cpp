// Simulations of the C interface.
#include <algorithm>
#include <vector>

#include "haloscope/c/bridge.hpp"
#include "haloscope/simulate/simulator.hpp"

struct hs_simulation {
  haloscope::simulate::Simulator simulator;
};

namespace haloscope::c {

static_assert(sizeof(hs_simulation_result::seconds) / sizeof(double) == op_kinds);
static_assert(sizeof(simulate::OpSeconds) == 3 * sizeof(double));

namespace {

simulate::Network from_c(const hs_network* given) {
  hs_network defaults;
  hs_network_init(&defaults);
  const hs_network n = versioned(given, defaults, "hs_network");
  simulate::Network network;
  for (int where = 0; where < simulate::places; ++where) {
    simulate::NetworkClass& c = network.classes[where];
    c.segments.clear();
    for (int i = 0; i < n.segment_count[where]; ++i) {
      const hs_segment& s = (&needed(n.segments[where], "segments"))[i];
      c.segments.push_back({s.from_bytes, s.latency_s, s.per_byte_s, s.overhead_send_s, s.overhead_receive_s, s.gap_s,
                            s.held_latency, s.held_per_byte, s.rendezvous != 0});
    }
    c.shared = n.shared[where];
    c.duplex = n.duplex[where];
  }
  network.injection_bytes_per_s = n.injection_bytes_per_s;
  return network;
}

simulate::RankClass from_c(const hs_rank_class& given) {
  simulate::RankClass result;
  if (given.opening < 0 || given.body < 0 || given.closing < 0 || given.op_count < 0 || given.plan_count < 0 ||
      given.reduction_count < 0)
    throw UsageError("a class of ranks has a negative number of plans, programs, reductions or operations");
  std::size_t messages = 0;
  for (int i = 0; i < given.plan_count; ++i) {
    result.plans.push_back(&needed((&needed(given.plans, "plans"))[i], "plans").plan);
    messages += result.plans.back()->messages.size();
  }
  const hs_rank_program* next = &needed(given.programs, "programs");
  const auto take = [&](std::vector<simulate::RankProgram>& list, int count) {
    for (int i = 0; i < count; ++i, ++next)
      list.push_back({&needed(next->program, "programs").program, next->plan, next->reduction});
  };
  take(result.opening, given.opening);
  take(result.body, given.body);
  take(result.closing, given.closing);
  for (int i = 0; i < given.reduction_count; ++i) {
    const hs_rank_reduction& reduction = (&needed(given.reductions, "reductions"))[i];
    result.reductions.push_back({reduction.seconds, reduction.waits != 0});
  }
  for (std::int64_t i = 0; i < given.op_count; ++i) {
    const double* seconds = &needed(given.seconds, "seconds") + 3 * i;
    result.seconds.push_back({seconds[0], seconds[1], seconds[2]});
  }
  if (given.flight_change) result.flight_change.assign(given.flight_change, given.flight_change + messages);
  result.comm_thread = given.comm_thread != 0;
  result.hand_s = given.hand_s;
  result.notice_s = given.notice_s;
  return result;
}

}  // namespace

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

void hs_network_init(hs_network* network) {
  if (!network) return;
  *network = {};
  network->struct_size = sizeof(hs_network);
  for (double& duplex : network->duplex) duplex = 1;
}

void hs_simulation_options_init(hs_simulation_options* options) {
  const simulate::Options o;
  if (!options) return;
  *options = {sizeof(hs_simulation_options),
              o.rounds,
              o.counted_from,
              o.noise_s,
              o.noise_share,
              o.seed,
              o.efficiency,
              o.by_itself,
              0};
}

hs_status hs_simulation_create(const hs_layout* layout, const hs_network* network, const int32_t* node,
                               const int32_t* socket, int32_t class_count, const hs_rank_class* classes,
                               const int32_t* class_of, hs_simulation** simulation) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    std::vector<simulate::RankClass> all;
    for (int32_t c = 0; c < class_count; ++c) all.push_back(from_c((&needed(classes, "classes"))[c]));
    const auto numbers = [&](const int32_t* given, const char* name) {
      const int32_t* first = &needed(given, name);
      return std::vector<int32_t>(first, first + l.size());
    };
    needed(simulation, "simulation") = new hs_simulation{simulate::Simulator(
        l, from_c(network), numbers(node, "node"), numbers(socket, "socket"), all, numbers(class_of, "class_of"))};
  });
}

void hs_simulation_free(hs_simulation* simulation) { delete simulation; }

hs_status hs_simulation_run(hs_simulation* simulation, const hs_simulation_options* options, double* ends,
                            hs_simulation_result* result) {
  return guarded([&] {
    hs_simulation_options defaults;
    hs_simulation_options_init(&defaults);
    const hs_simulation_options o = versioned(options, defaults, "hs_simulation_options");
    needed(ends, "ends");
    const simulate::Result found = needed(simulation, "simulation")
                                       .simulator.run({o.rounds, o.counted_from, o.noise_s, o.noise_share, o.seed,
                                                       o.efficiency, o.by_itself != 0});
    std::copy(found.ends.begin(), found.ends.end(), ends);
    hs_simulation_result& r = needed(result, "result");
    std::copy(found.seconds.begin(), found.seconds.end(), r.seconds);
    r.messages = found.messages;
    r.bytes = found.bytes;
    r.operations = found.operations;
    r.events = found.events;
  });
}
