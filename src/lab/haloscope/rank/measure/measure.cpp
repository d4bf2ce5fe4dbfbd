#include "haloscope/rank/measure/measure.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/core/choice_fields.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/model/normal.hpp"
#include "haloscope/rank/measure/barrier.hpp"
#include "haloscope/rank/measure/environment.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "haloscope/rank/measure/sequential.hpp"
#include "haloscope/rank/measure/steps.hpp"
#include "haloscope/rank/measure/timers.hpp"
#include "haloscope/rank/request_kinds.hpp"
#include "haloscope/rank/watch/clock_sampler.hpp"
#include "haloscope/rank/watch/events.hpp"
#include "haloscope/rank/watch/timeline.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

constexpr std::size_t max_trace_events = 100000;  // per rank; later ones are left out

std::int64_t total(std::int64_t value, MPI_Comm comm) {
  REQUIRE_MPI(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM, comm));
  return value;
}

std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// Everything that decides the result of `verify` steps, as a key.
std::string problem_key(const Problem& problem, const std::string& app, std::int64_t steps) {
  Json key{{"app", app},
           {"form", problem.form},
           {"real", to_word(problem.real)},
           {"cells", problem.grid.cells},
           {"periodic", problem.grid.periodic},
           {"steps", steps}};
  for (const auto& [name, value] : problem.parameters.all()) key[name] = to_json(value);
  return key.dump();
}

/// The same problem by the simplest correct code: `reference`, bulk, depth 1, one thread, fields of the host.
Choice reference_of(const Choice& choice) {
  Choice plain;
  plain.app = choice.app;
  plain.grid = choice.grid;
  plain.form = choice.form;
  plain.real = choice.real;
  plain.ranks = choice.ranks;
  plain.process_grid = choice.process_grid;
  plain.set = choice.set;
  plain.strategy = "reference";
  return plain;
}

std::uint64_t reference_checksum(Session& s, const Choice& choice, std::int64_t steps) {
  const auto [known, fresh] = s.reference_checksums.try_emplace(problem_key(problem_of(choice), choice.app, steps), 0);
  if (!fresh) return known->second;
  if (choice.schedule->in_place) return known->second = sequential_checksum(s.comm, choice, steps);
  RunnerOptions options;
  options.timers = false;
  options.status = &s.board->mine();
  const auto opened = open_run(s.comm, reference_of(choice), options, 1);
  Run& run = *opened;
  run.initialise();
  run.advance(steps, false);
  run.require_unread_margin();
  return known->second = run.checksum();
}

/// Returns initial data for a check: the run's, unless they are the app's default and uniform, which would hide faults.
std::string initial_for_check(const App& app, const Problem& problem) {
  const std::string& word = problem.parameters.word("initial");
  return !app.starts_random && word == app.initials.front() ? "random" : word;
}

Json verify(Session& s, const Request& request, Run& run) {
  if (request.verify == 0) return {{"status", "off"}};
  Choice choice = request.choice;
  const std::string initial = initial_for_check(run.candidate().app, run.candidate().problem);
  choice.set["initial"] = initial;
  run.initialise(initial);
  const std::int64_t steps = run.advance(request.verify, true).steps;
  const std::uint64_t sum = run.checksum();
  const std::uint64_t expected = reference_checksum(s, choice, steps);
  const bool everywhere = total(run.canaries_alive() ? 0 : 1, s.comm) == 0;
  return {{"status", sum == expected && everywhere ? "passed" : "failed"},
          {"steps", request.verify},
          {"against", choice.schedule->in_place ? "sequential loop" : "reference"},
          {"checksum", hex(sum)},
          {"expected", hex(expected)},
          {"canaries", everywhere}};
}

/// Steps per repetition: as requested, or enough for `seconds`, found by growing; a multiple of the depth.
std::int64_t choose_steps(Session& s, const Request& request, Run& run) {
  if (request.seconds <= 0) return request.steps;
  const double wanted_s = beside_barriers(s, request.seconds);
  for (std::int64_t steps = request.choice.depth;;) {
    const double begin = time_after_barrier(s);
    run.advance(steps);
    const double took = largest(time_after_barrier(s) - begin, s.comm);
    const std::int64_t next = next_steps(steps, took, wanted_s, request.choice.depth);
    if (next == steps) return steps;
    steps = next;
  }
}

Json request_json(const Request& r, const Run& run, std::int64_t steps) {
  Json json = to_json(r.choice);
  json.update(measure_json(r));
  for (const char* here : {"verify", "timeline", "trace"}) json.erase(here);
  json["steps"] = steps;
  json["memory"] = to_word(run.memory());
  json["process_grid"] = Json::array();
  for (int d = 0; d < r.choice.grid.dims; ++d) json["process_grid"].push_back(run.layout().ranks()[d]);
  if (!r.choice.device.empty() && r.choice.device_kernel.empty()) json["device_kernel"] = "stream";
  return json;
}

/// Totals over all ranks of the last repetition.
Json counts_json(Session& s, const Request& r, const Run& run, std::int64_t steps) {
  const Counts counts = run.counts();
  const Index& n = r.choice.grid.cells;
  const std::int64_t points = n[0] * n[1] * n[2] * steps;
  double flops = 0;
  for (const Stage& stage : run.candidate().step.stages)
    for (const SweepSpec& sweep : stage.sweeps) flops += sweep.flops_per_point;
  Json json{
      {"exchanges", run.program().wraps ? 0 : counts.exchanges}, {"messages", total(counts.messages, s.comm)},
      {"message_bytes", total(counts.message_bytes, s.comm)},    {"copied_bytes", total(counts.copied_bytes, s.comm)},
      {"shared_bytes", total(shared_bytes(), s.comm)},           {"field_bytes", total(run.field_bytes(), s.comm)},
      {"resident_bytes", total(run.most_resident(), s.comm)},    {"points", points},
      {"swept_points", total(counts.swept_points, s.comm)},      {"flops", static_cast<double>(points) * flops}};
  if (counts.reductions > 0) json["reductions"] = counts.reductions;
  for (int stage = 0; stage < run.stages() && (run.stages() > 1 || has_loops(run.candidate().step)); ++stage)
    json["stages"][run.stage(stage).stage().name] = run.stage(stage).executions();
  return json;
}

/// Bytes that one exchange of each stage sends from node to node, and would send were ranks placed by their numbers.
void count_between_nodes(Json& counts, Session& s, const Run& run) {
  Choice choice = run.candidate().choice;
  const std::vector<int> node = sites_of(s.comm, emulated_nodes(choice.ranks, choice.nodes, choice.placement)).node;
  if (std::count(node.begin(), node.end(), node.front()) == choice.ranks) return;
  choice.reorder = Reorder::none;
  const Layout by_number = make_layout(choice);
  std::int64_t bytes = 0, bytes_by_number = 0;
  for (int stage = 0; stage < run.stages(); ++stage) {
    const ExchangeSpec spec = exchange_spec(run.candidate(), stage);
    bytes += make_plan(run.layout(), s.rank, spec).bytes_between(node);
    bytes_by_number += make_plan(by_number, s.rank, spec).bytes_between(node);
  }
  counts["between_nodes_bytes"] = total(bytes, s.comm);
  counts["between_nodes_bytes_by_number"] = total(bytes_by_number, s.comm);
}

/// Cores each rank's threads may run on: [rank][...], on rank 0.
Json placement(MPI_Comm comm) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<std::int64_t> cores;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &set)) cores.push_back(c);
  return lists_of_all(comm, cores);
}

/// The traced operations of a stage, each with its name.
void add_stage_events(std::vector<TimelineEvent>& events, const BoundStage& stage) {
  for (const auto& [runner, executions] : stage.executed()) {
    const Program& program = runner->program();
    for (TimelineEvent& event : events_of(*runner)) {
      const Op& op = program.ops[event.op];
      event.stage = stage.stage().name;
      event.timer = timer_name(stage, program, op);
      if (op.kind == OpKind::sweep) {
        const Sweep& sweep = program.sweeps[op.target];
        const auto& in_step = stage.stage().sweeps[sweep.number].in_step;
        if (in_step) event.timer += " " + in_step(event.step + sweep.step);
      }
      events.push_back(std::move(event));
    }
  }
}

/// Traces of the runners and of the MPI clock from the last repetition.
void save_trace(Session& s, const Request& request, const Run& run, const MpiClock& clock) {
  std::vector<TimelineEvent> events = events_of(clock);
  for (int stage = 0; stage < run.stages(); ++stage) add_stage_events(events, run.stage(stage));
  write_trace(s.comm, request.trace, events);
}

Json timeline_of(Session& s, const Run& run, const MpiClock& clock, double measured_s) {
  RankTimes mine;
  mine.measured_s = measured_s;
  mine.mpi = clock.calls();
  mine.epochs = clock.epochs().sums();
  for (const Runner* runner : run.runners()) mine.add(*runner);
  return timeline_json(s.comm, mine);
}

/// The clock of rank 0's core, and a warning where it fell.
void note_clock(Json& record, ClockSampler& sampler) {
  const std::vector<double>& mhz = sampler.stop();
  if (mhz.empty()) {
    record["environment"]["clock_mhz"] = {{"absent", "neither cpufreq nor /proc/cpuinfo reports the core's clock"}};
    return;
  }
  const ClockSummary clock = summary_of(mhz);
  record["environment"]["clock_mhz"] = {{"mean", clock.mean},
                                        {"least", clock.least},
                                        {"most", clock.most},
                                        {"samples", mhz.size()},
                                        {"source", sampler.source()}};
  if (!clock.warning.empty()) record["warnings"].push_back(clock.warning);
}

/// Converts end states of repetitions and the latest numbers of the reductions to JSON.
Json outcome_json(const Run& run, const std::vector<Progress>& done, const std::vector<Json>& reduced) {
  Json json{{"steps", Json::array()}, {"reduced", Json::object()}};
  bool enough = true;
  for (const Progress& progress : done) {
    json["steps"].push_back(progress.steps);
    enough = enough && progress.finished;
  }
  for (const Json& one : reduced)
    for (const auto& [name, numbers] : one.items()) json["reduced"][name].push_back(numbers);
  if (const App& app = run.candidate().app; app.ends_early && app.ends_early(run.candidate().problem))
    json["enough"] = enough;
  return json;
}

/// A reduction's result: a plain number, or a list when there are several.
Json reduced_json(const Run& run) {
  Json json = Json::object();
  for (int stage = 0; stage < run.stages(); ++stage) {
    const auto& reductions = run.candidate().step.stages[stage].reductions;
    for (std::size_t r = 0; r < reductions.size(); ++r) {
      const auto numbers = run.reduced(stage, static_cast<int>(r));
      if (numbers.empty()) continue;
      json[reductions[r].name] =
          numbers.size() == 1 ? Json(numbers[0]) : Json(std::vector(numbers.begin(), numbers.end()));
    }
  }
  return json;
}

Json entries_json(const Run& run) {
  Json json = Json::object();
  for (const RecordEntry& entry : run.entries())
    json[entry.name] = std::visit([](const auto& value) { return Json(value); }, entry.value);
  return json;
}

bool reduces(const Run& run) {
  const auto& stages = run.candidate().step.stages;
  return std::any_of(stages.begin(), stages.end(), [](const Stage& stage) { return !stage.reductions.empty(); });
}

/// All repetitions of one configuration, and their results.
struct Repetitions {
  std::vector<double> times;  // seconds of each
  std::vector<Progress> done;
  std::vector<Json> reduced;
  double measured_s = 0;  // by this rank, without the barriers around a repetition
};

Repetitions repeat(Session& s, const Request& request, Run& run, MpiClock& clock, std::int64_t steps) {
  const App& app = run.candidate().app;
  const bool solves = app.ends_early != nullptr;  // every solution starts anew; other apps go on
  for (std::int64_t w = 0; w < request.warmup; ++w) {
    if (solves) run.initialise();
    run.advance(steps);
  }
  run.reset_timers();
  Repetitions all;
  for (std::int64_t r = 0; r < request.repetitions; ++r) {
    if (solves) run.initialise();
    run.reset_traces();
    clock.reset_spans();
    const double begin = time_after_barrier(s);
    if (request.timeline) clock.start();
    all.done.push_back(run.advance(steps));
    clock.stop();
    const double own_s = MPI_Wtime() - begin;
    all.measured_s += own_s;
    s.board->mine().set(Phase::idle);
    all.times.push_back(largest(own_s, s.comm));
    all.reduced.push_back(reduced_json(run));
  }
  return all;
}

Json environment_json(Session& s, const Request& request, const Run& run) {
  Json json = s.environment;
  json["isa"] = run.isa();
  if (run.device()) json["device"] = device_json(request.choice.device, *run.device());
  json["placement"] = placement(s.comm);
  json["oversubscribed"] = more_ranks_than_cores(s.comm, request.choice.threads);
  if (request.choice.ftz) json["ftz"] = true;
  return json;
}

}  // namespace

Json measure(Session& s, const Request& request) {
  s.board->mine().set(Phase::setup);
  RunnerOptions options;
  options.timers = request.timers;
  options.status = &s.board->mine();
  if (s.fault && s.fault->rank == s.rank) options.injection = {&Fault::before, s.fault};
  if (!request.trace.empty()) options.trace_events = max_trace_events;
  std::optional<EventCounters> events;
  if (request.events) {
    events.emplace();
    options.events = {events->names().size(), EventCounters::read_into, &*events};
  }
  MpiClock clock(request.trace.empty() ? 0 : max_trace_events, s.board->mine());
  const auto opened = open_run(s.comm, request.choice, options);
  Run& run = *opened;
  // Pinned by the runtime's own threads once they exist, that is after the first touch.
  pin_threads(s.comm, request.choice.threads);

  const Json verification = verify(s, request, run);
  run.initialise();
  const std::int64_t chosen_steps = choose_steps(s, request, run);
  std::optional<ClockSampler> clock_speed;
  if (request.events && s.rank == 0) clock_speed.emplace();
  const Repetitions all = repeat(s, request, run, clock, chosen_steps);
  if (clock_speed) clock_speed->stop();
  const std::int64_t steps = all.done.back().steps;
  std::vector<double> step_times;
  for (std::size_t r = 0; r < all.times.size(); ++r)
    step_times.push_back(all.times[r] / static_cast<double>(all.done[r].steps));
  std::sort(step_times.begin(), step_times.end());

  Json record{{"id", request.id}, {"kind", "measurement"}};
  record["request"] = request_json(request, run, steps);
  record["environment"] = environment_json(s, request, run);
  record["time_s"] = {{"repetitions", all.times},
                      {"step",
                       {{"min", step_times.front()},
                        {"median", model::quantile(step_times, 0.5)},
                        {"mean", std::accumulate(step_times.begin(), step_times.end(), 0.0) / step_times.size()},
                        {"max", step_times.back()}}}};
  if (request.timers)
    record.update(times_json(s.comm, run, static_cast<double>(steps * request.repetitions), static_cast<double>(steps),
                             all.measured_s, events ? events->names() : std::vector<std::string>{}));
  if (events) record["environment"]["events_absent"] = events->absent();
  record["counts"] = counts_json(s, request, run, steps);
  count_between_nodes(record["counts"], s, run);
  if (const std::string report = run.transport_report(); !report.empty()) record["transport_report"] = report;
  record["gflops"] = record["counts"]["flops"].get<double>() / (model::quantile(step_times, 0.5) * steps) * 1e-9;
  record["verification"] = verification;
  if (run.has_exact_solution()) {
    const auto norms = run.error_norms();
    record["norms"] = {{"max", norms.max}, {"l2", norms.l2}, {"steps", run.time()}};
  }
  record["warnings"] = Json::array();
  if (clock_speed) note_clock(record, *clock_speed);
  if (reduces(run)) record["outcome"] = outcome_json(run, all.done, all.reduced);
  if (Json entries = entries_json(run); !entries.empty()) record["app"] = entries;
  if (reduces(run) && !record["outcome"].value("enough", true))
    record["warnings"].push_back("the condition that should have ended the run did not hold within " +
                                 std::to_string(chosen_steps) + " steps");
  if (step_times.back() > 1.5 * step_times.front())
    record["warnings"].push_back("noisy: repetitions differ by more than 50 %");
  if (request.timeline) record["timeline"] = timeline_of(s, run, clock, all.measured_s);
  if (!request.trace.empty()) save_trace(s, request, run, clock);
  return record;
}

namespace {

/// Several threads call MPI only where they make partitions of messages ready. That thread level costs every other
/// transport about 1 us per exchange (MPICH 5, 2 ranks), so it is requested only where a request needs it.
int thread_level_of(const Json& request) {
  const int threads = request.value("threads", 1);
  Json strategies = request.value("stage_strategies", Json::object());
  strategies[""] = request.value("strategy", "ordered/p2p");
  for (const Json& strategy : strategies)
    if (threads > 1 && calls_concurrently(Strategy(strategy.get<std::string>()))) return MPI_THREAD_MULTIPLE;
  return MPI_THREAD_FUNNELED;
}

double least_seconds_of(const Json& request) {
  return request.value("seconds", 0.0) * request.value("repetitions", 5.0);
}

}  // namespace

const RequestKind& measurement_kind() {
  static const RequestKind kind{
      .name = "measurement",
      .serve = [](Session& session, const Json& request,
                  const std::string& id) { return measure(session, measurement_request(request, id, session.size)); },
      .refuse = [](const Json& request) { return illegal(requested_choice(request)); },
      .thread_level = thread_level_of,
      .least_seconds = least_seconds_of};
  return kind;
}

}  // namespace haloscope
