// Figure `simulate`: events of the message-level simulator per second on one core, with 10^4 to 10^6 ranks.
//
// An event is a message that leaves, a message that is received, or another operation that involves other ranks (a call
// for progress, a barrier); a rank's local operations are not counted. Costs are invented: they affect the times of
// events, not their number.
#include <cstdlib>
#include <ctime>

#include "haloscope/extend/schedule.hpp"
#include "haloscope/simulate/simulator.hpp"
#include "harness.hpp"

namespace {

using namespace haloscope;
using namespace haloscope::bench;

constexpr double bar = 1e6;
constexpr int ranks_per_socket = 12, sockets_per_node = 2;

/// The input of a simulation: a periodic cube of equal blocks, one class of ranks.
struct Setup {
  Layout layout;
  Plan plan;
  Program program;
  simulate::Network network;
  std::vector<std::int32_t> node, socket;
};

Setup make_setup(const ProcessGrid& grid, Pattern pattern, const char* schedule) {
  constexpr std::int64_t side = 32;
  Layout layout(GridSpec{3, {grid[0] * side, grid[1] * side, grid[2] * side}, {true, true, true}}, grid);
  ExchangeSpec spec;
  spec.pattern = pattern;
  Plan plan = make_plan(layout, 0, spec);
  Program program = find_schedule(schedule).make(stencil_step(3, 1, true).stages.front(), plan, ScheduleOptions{});
  Setup setup{layout, plan, program, {}, {}, {}};
  for (int where = 0; where < simulate::places; ++where) {
    auto& c = setup.network.classes[where];
    c.segments = {{.latency_s = 5e-7 * (1 + 2 * where), .per_byte_s = 1e-10 * (1 + where)}};
    c.shared = 0.5;
  }
  setup.network.injection_bytes_per_s = 1e10;
  for (int r = 0; r < layout.size(); ++r) {
    setup.socket.push_back(r / ranks_per_socket);
    setup.node.push_back(r / (ranks_per_socket * sockets_per_node));
  }
  return setup;
}

double price(const Program& program, const Op& op) {
  if (op.kind == OpKind::sweep) return 1e-9 * static_cast<double>(program.sweeps[op.target].region.volume());
  return op.kind == OpKind::pack || op.kind == OpKind::unpack ? 1e-6 : 0.0;
}

simulate::Simulator make_simulator(const Setup& setup) {
  simulate::RankClass c;
  c.plans = {&setup.plan};
  c.body = {{&setup.program}};
  for (const Op& op : setup.program.ops) c.seconds.push_back({0, 0, price(setup.program, op)});
  return simulate::Simulator(setup.layout, setup.network, setup.node, setup.socket, {c},
                             std::vector<std::int32_t>(setup.layout.size(), 0));
}

/// Returns the CPU seconds of this process. It never waits, so other load on the machine does not count.
double core_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void measure(const char* name, const ProcessGrid& grid, Pattern pattern, const char* schedule, double noise, int rounds,
             int runs) {
  const Setup setup = make_setup(grid, pattern, schedule);
  simulate::Simulator simulator = make_simulator(setup);
  simulate::Options options;
  options.rounds = rounds;
  options.noise_share = noise;
  std::vector<double> rates;
  std::int64_t events = 0;
  for (int run = -1; run < runs; ++run) {
    const double start = core_seconds();
    const simulate::Result found = simulator.run(options);
    const double seconds = core_seconds() - start;
    if (found.messages != static_cast<std::int64_t>(rounds) * setup.layout.size() * setup.plan.messages_out()) {
      std::fprintf(stderr, "simulate: %s lost messages\n", name);
      std::exit(1);
    }
    events = found.events;
    if (run >= 0) rates.push_back(static_cast<double>(found.events) / seconds);
  }
  std::printf(
      "{\"figure\":\"simulate\",\"case\":\"%s\",\"unit\":\"events/s\",\"a\":\"simulator\",\"samples_a\":%s,"
      "\"value\":\"a\",\"bar\":%g,\"direction\":\">=\",\"threads\":1,\"ranks\":1,\"notes\":\"%lld events a run, "
      "per second of core time, set-up of a run included\"}\n",
      name, json_list(rates).c_str(), bar, static_cast<long long>(events));
  std::fflush(stdout);
  std::fprintf(stderr, "simulate %-50s %.3g events/s\n", name, median(rates));
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = has_flag(argc, argv, "--quick") ? 2 : 20;
  Team pinned(1);
  measure("10^4 ranks, bulk ordered", {25, 20, 20}, Pattern::ordered, "bulk", 0.05, 10, runs);
  measure("10^5 ranks, bulk ordered", {50, 50, 40}, Pattern::ordered, "bulk", 0.05, 2, runs);
  measure("10^5 ranks, split ordered", {50, 50, 40}, Pattern::ordered, "split", 0.05, 2, runs);
  measure("10^5 ranks, bulk direct, 26 messages a rank", {50, 50, 40}, Pattern::direct, "bulk", 0.05, 1, runs);
  measure("10^6 ranks, bulk ordered", {100, 100, 100}, Pattern::ordered, "bulk", 0.05, 1, runs);
  return 0;
}
