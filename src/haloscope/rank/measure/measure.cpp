#include "haloscope/rank/measure/measure.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <optional>

#include "haloscope/comm/cores.hpp"
#include "haloscope/error.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/rank/measure/poisson_record.hpp"
#include "haloscope/rank/measure/steps.hpp"
#include "haloscope/rank/watch/timeline.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

constexpr std::size_t most_trace_events = 100000;  // per rank; later ones are left out

/// Barrier that the watchdog watches, then the time (White & Dongarra 2011, IV-C: a barrier before both clock
/// readings).
double time_after_barrier(Session& s) {
  s.board->mine().set(static_cast<std::int32_t>(OpKind::barrier));
  MPI_Barrier(s.comm);
  s.board->mine().set(Phase::idle);
  return MPI_Wtime();
}

double largest(double value, MPI_Comm comm) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm);
  return value;
}

std::int64_t total(std::int64_t value, MPI_Comm comm) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM, comm);
  return value;
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// rank0, min, quartiles, mean, max over ranks.
Json over_ranks(double value, MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<double> all(static_cast<std::size_t>(size));
  MPI_Gather(&value, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, 0, comm);
  const double rank0 = all[0];
  std::sort(all.begin(), all.end());
  return {{"rank0", rank0},
          {"min", all.front()},
          {"q1", quantile(all, 0.25)},
          {"median", quantile(all, 0.5)},
          {"q3", quantile(all, 0.75)},
          {"mean", std::accumulate(all.begin(), all.end(), 0.0) / size},
          {"max", all.back()}};
}

std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// Everything that decides the result of `verify` steps, as a key.
std::string problem_key(const Request& r) {
  Json key{{"app", r.choice.app},
           {"form", kernel_form(r.choice)},
           {"real", r.choice.real},
           {"cells", r.choice.grid.cells},
           {"periodic", r.choice.grid.periodic},
           {"steps", r.verify},
           {"initial", r.parameters.initial},
           {"seed", r.parameters.seed},
           {"velocity", r.parameters.velocity},
           {"nu", r.parameters.nu},
           {"sigma", r.parameters.sigma},
           {"function", r.parameters.function},
           {"weights", r.parameters.weights}};
  return key.dump();
}

/// Checksum of the same problem by the simplest correct code: `reference`, bulk, depth 1, one thread.
std::uint64_t reference_checksum(Session& s, const Request& request) {
  const auto [known, fresh] = s.reference_checksums.try_emplace(problem_key(request), 0);
  if (fresh && request.choice.schedule == "pipeline") {
    known->second = sequential_checksum(s.comm, request);
  } else if (fresh) {
    Request plain = request;
    plain.choice.strategy = "reference";
    plain.choice.schedule = "bulk";
    plain.choice.region = "full";
    plain.choice.depth = 1;
    plain.choice.threads = 1;
    plain.choice.device.clear();
    plain.choice.graph = false;
    SimulationOptions options;
    options.runner.timers = false;
    options.runner.status = &s.board->mine();
    Simulation simulation(s.comm, plain.choice, plain.parameters, options);
    simulation.initialise();
    simulation.run(request.verify);
    known->second = simulation.checksum();
  }
  return known->second;
}

Json verify(Session& s, const Request& asked, Simulation& simulation) {
  if (asked.verify == 0) return {{"status", "off"}};
  Request request = asked;
  if (request.parameters.initial == "zero") request.parameters.initial = "random";  // zeros would hide faults
  simulation.initialise(request.parameters.initial);
  simulation.run(request.verify, true);
  const std::uint64_t sum = simulation.checksum();
  const std::uint64_t expected = reference_checksum(s, request);
  const bool whole = simulation.canaries_alive();
  const bool everywhere = total(whole ? 0 : 1, s.comm) == 0;
  return {{"status", sum == expected && everywhere ? "passed" : "failed"},
          {"steps", request.verify},
          {"against", request.choice.schedule == "pipeline" ? "sequential loop" : "reference"},
          {"checksum", hex(sum)},
          {"expected", hex(expected)},
          {"canaries", everywhere}};
}

/// Steps per repetition: as asked, or enough for `seconds`, found by trials; a multiple of the depth.
std::int64_t choose_steps(Session& s, const Request& request, Simulation& simulation) {
  if (request.seconds <= 0) return request.steps;
  std::int64_t steps = 0, next = request.choice.depth;
  while (next != steps) {
    steps = next;
    const double begin = time_after_barrier(s);
    simulation.run(steps);
    const double took = largest(time_after_barrier(s) - begin, s.comm);
    next = next_steps(steps, took, request.seconds, request.choice.depth);
  }
  return steps;
}

Json request_json(const Request& r, const Simulation& simulation, std::int64_t steps) {
  const Choice& c = r.choice;
  Json j{{"app", c.app},
         {"form", c.form.empty() ? find_app(c.app).forms.front() : c.form},
         {"real", c.real},
         {"ranks", c.ranks},
         {"threads", c.threads},
         {"strategy", c.strategy},
         {"schedule", c.schedule},
         {"depth", c.depth},
         {"region", c.region},
         {"sharing", c.sharing},
         {"steps", steps},
         {"seconds", r.seconds},
         {"repetitions", r.repetitions},
         {"warmup", r.warmup},
         {"barrier", r.options.barrier},
         {"nodes", c.nodes},
         {"placement", c.placement},
         {"memory", simulation.memory() == MemoryKind::shared ? "shared" : "own"},
         {"tiles", r.options.tiles},
         {"initial", r.parameters.initial},
         {"seed", r.parameters.seed},
         {"timers", r.options.runner.timers}};
  for (int d = 0; d < c.grid.dims; ++d) {
    j["cells"].push_back(c.grid.cells[d]);
    j["periodic"].push_back(c.grid.periodic[d]);
    j["process_grid"].push_back(simulation.layout().ranks()[d]);
  }
  if (r.options.flush_to_zero) j["ftz"] = true;
  if (!c.device.empty()) {
    j["device"] = c.device;
    describe(r.options.device, j);
    if (!messages_on_device(c)) j["box"] = c.box;
    if (c.graph) j["graph"] = true;
    if (c.schedule == "streams") j["pack"] = r.options.device.pack_first ? "first" : "beside";
  }
  if (c.app == "advection3d") {
    j["velocity"] = r.parameters.velocity;
    j["nu"] = r.parameters.nu > 0 ? r.parameters.nu : largest_stable_nu(r.parameters.velocity);
  }
  return j;
}

Json counts_json(Session& s, const Request& r, const Simulation& simulation, std::int64_t steps) {
  const Plan& plan = simulation.plan();
  const bool exchanging = !simulation.program().wraps;
  const std::int64_t exchanges = exchanging ? (steps + r.choice.depth - 1) / r.choice.depth : 0;
  std::int64_t copied = 0;
  for (const Copy& c : plan.copies) copied += c.to.volume() * plan.spec.quantities[c.quantity].element_bytes;
  const Simulation::Traffic traffic = simulation.traffic(steps);
  const Index& n = r.choice.grid.cells;
  const std::int64_t points = n[0] * n[1] * n[2] * steps;
  return {{"exchanges", exchanges},
          {"messages", total(traffic.messages, s.comm)},
          {"message_bytes", total(traffic.bytes, s.comm)},
          {"copied_bytes", exchanges * total(copied, s.comm)},
          {"shared_bytes", total(shared_bytes(), s.comm)},
          {"points", points},
          {"swept_points", total(steps * simulation.swept_points() / simulation.program().steps, s.comm)},
          {"flops", static_cast<double>(points) * find_app(r.choice.app).flops_per_point}};
}

/// Cores each rank's threads may run on: [rank][...], on rank 0.
Json placement(MPI_Comm comm) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  int size = 0;
  MPI_Comm_size(comm, &size);
  std::vector<cpu_set_t> all(static_cast<std::size_t>(size));
  MPI_Gather(&set, sizeof set, MPI_BYTE, all.data(), sizeof set, MPI_BYTE, 0, comm);
  Json list = Json::array();
  for (const cpu_set_t& one : all) {
    Json cores = Json::array();
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &one)) cores.push_back(c);
    list.push_back(cores);
  }
  return list;
}

/// What the runners and the clock of MPI calls saw in the last repetition.
void save_trace(Session& s, const Request& request, const Simulation& simulation, const MpiClock& clock) {
  std::vector<TimelineEvent> events = events_of(clock);
  for (const Runner* runner : simulation.runners())
    for (TimelineEvent& event : events_of(*runner)) events.push_back(std::move(event));
  write_trace(s.comm, request.trace, events);
}

Json timeline_of(Session& s, const Simulation& simulation, const MpiClock& clock, double measured_s) {
  RankTimes mine;
  mine.measured_s = measured_s;
  mine.mpi = clock.calls();
  for (const Runner* runner : simulation.runners()) mine.add(*runner);
  return timeline_json(s.comm, mine);
}

WorkMeter request_meter(const Request& request) {
  WorkMeter meter;
  meter.blocks = request.work_blocks;
  meter.window = request.work_window;
  meter.lines = request.choice.grid.cells[1];
  return meter;
}

}  // namespace

Json measure(Session& s, const Request& request) {
  s.board->mine().set(Phase::setup);
  SimulationOptions options = request.options;
  options.runner.status = &s.board->mine();
  if (s.fault && s.fault->rank == s.rank) options.runner.injection = {&Fault::before, s.fault};
  if (!request.trace.empty()) options.runner.trace_events = most_trace_events;
  MpiClock clock(request.trace.empty() ? 0 : most_trace_events, s.board->mine());
  Simulation simulation(s.comm, request.choice, request.parameters, options);
  // Pinned by the runtime's own threads once they exist, that is after the first touch.
  pin_threads(s.comm, request.choice.threads);

  const Json verification = verify(s, request, simulation);
  simulation.initialise();
  const std::int64_t asked_steps = choose_steps(s, request, simulation);
  std::optional<PoissonSolver> solver;
  std::vector<PoissonResult> solutions;
  if (request.choice.app == "poisson2d") {
    PoissonGoal goal = request.goal;
    goal.iterations = asked_steps;
    solver.emplace(s.comm, simulation, request.choice, goal);
  }
  const auto repeat = [&] { solver ? solutions.push_back(solver->solve()) : simulation.run(asked_steps); };
  const auto restart = [&] {  // every solution starts anew; other apps go on
    if (solver) simulation.initialise();
    if (solver) simulation.poisson()->meter() = request_meter(request);
  };
  for (int w = 0; w < request.warmup; ++w) {
    restart();
    repeat();
  }
  solutions.clear();

  simulation.reset_timers();
  double measured_s = 0;  // by this rank, without the barriers around a repetition
  std::vector<double> times;
  for (int r = 0; r < request.repetitions; ++r) {
    restart();
    simulation.reset_traces();
    clock.reset_spans();
    const double begin = time_after_barrier(s);
    if (request.timeline) clock.start();
    repeat();
    clock.stop();
    measured_s += MPI_Wtime() - begin;
    s.board->mine().set(Phase::idle);
    times.push_back(largest(time_after_barrier(s) - begin, s.comm));
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    if (s.watchdog)
      s.watchdog->median_step(quantile(sorted, 0.5) / static_cast<double>(asked_steps) * request.choice.depth);
  }

  std::vector<double> step_times;
  for (std::size_t r = 0; r < times.size(); ++r)
    step_times.push_back(times[r] / static_cast<double>(solver ? solutions[r].iterations : asked_steps));
  std::sort(step_times.begin(), step_times.end());
  const std::int64_t steps = solver ? solutions.back().iterations : asked_steps;
  Json record{{"id", request.id}, {"kind", "measurement"}};
  record["request"] = request_json(request, simulation, steps);
  record["environment"] = s.environment;
  record["environment"]["isa"] = simulation.isa();
  if (simulation.device()) record["environment"]["device"] = device_json(request.choice.device, *simulation.device());
  record["environment"]["placement"] = placement(s.comm);
  record["environment"]["oversubscribed"] = more_ranks_than_cores(s.comm, request.choice.threads);
  record["time_s"] = {{"repetitions", times},
                      {"step",
                       {{"min", step_times.front()},
                        {"median", quantile(step_times, 0.5)},
                        {"mean", std::accumulate(step_times.begin(), step_times.end(), 0.0) / step_times.size()},
                        {"max", step_times.back()}}}};
  const auto seconds = simulation.seconds();
  if (request.options.runner.timers)
    for (int t = 0; t < (simulation.device() ? timer_count : host_timer_count); ++t)
      record["phases_s"][to_string(static_cast<Timer>(t))] =
          over_ranks(seconds[t] / static_cast<double>(steps * request.repetitions), s.comm);
  record["counts"] = counts_json(s, request, simulation, steps);
  if (const std::string report = simulation.transport_report(); !report.empty()) record["transport_report"] = report;
  record["gflops"] = record["counts"]["flops"].get<double>() / (quantile(step_times, 0.5) * steps) * 1e-9;
  record["verification"] = verification;
  if (has_exact_solution(request.choice, request.parameters)) {
    const auto norms = simulation.error_norms();
    record["norms"] = {{"max", norms.max}, {"l2", norms.l2}, {"steps", simulation.time()}};
  }
  record["warnings"] = Json::array();
  if (solver) record["poisson"] = poisson_json(s.comm, request, simulation, *solver, solutions);
  if (solver && !record["poisson"]["reached"])
    record["warnings"].push_back("the precision was not reached in " + std::to_string(asked_steps) + " iterations");
  if (request.options.flush_to_zero) record["environment"]["ftz"] = true;
  if (step_times.back() > 1.5 * step_times.front())
    record["warnings"].push_back("noisy: repetitions differ by more than 50 %");
  if (request.timeline) record["timeline"] = timeline_of(s, simulation, clock, measured_s);
  if (!request.trace.empty()) save_trace(s, request, simulation, clock);
  return record;
}

}  // namespace haloscope
