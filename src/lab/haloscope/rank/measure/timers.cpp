#include "haloscope/rank/measure/timers.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/model/normal.hpp"

namespace haloscope {

namespace {

using Json = nlohmann::json;

bool at_edges(const Program& program, const Plan& plan, const Op& op) {
  const auto& copies = program.copy_sets[op.target];
  return !copies.empty() && copies.front().round == plan.rounds;
}

Component component_of(const Program& program, const Plan& plan, const Op& op) {
  switch (op.kind) {
    case OpKind::sweep:
      return Component::compute;
    case OpKind::reduce:
    case OpKind::reduced:
      return Component::collectives;
    case OpKind::barrier:
      return Component::barrier;
    case OpKind::copy:
      return at_edges(program, plan, op) ? Component::update_boundary : Component::point_to_point;
    default:
      return Component::point_to_point;
  }
}

/// The place of a stage's timer among those from `first` on.
std::size_t find_or_add(std::vector<NamedTimer>& timers, std::size_t first, const NamedTimer& wanted) {
  for (std::size_t i = first; i < timers.size(); ++i)
    if (timers[i].name == wanted.name && timers[i].component == wanted.component) return i;
  timers.push_back(wanted);
  return timers.size() - 1;
}

void add_timers(std::vector<NamedTimer>& timers, const BoundStage& stage) {
  const std::size_t first = timers.size();
  for (const auto& [runner, executions] : stage.executed()) {
    const Program& program = runner->program();
    std::set<std::size_t> counted;
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      if (op.kind == OpKind::progress) continue;
      const std::size_t at = find_or_add(
          timers, first, {stage.stage().name, timer_name(stage, program, op), component_of(program, stage.plan(), op)});
      timers[at].seconds += runner->op_seconds()[i];
      const std::span<const double> events = runner->op_events(i);
      timers[at].events.resize(events.size());
      std::transform(events.begin(), events.end(), timers[at].events.begin(), timers[at].events.begin(), std::plus<>());
      if (counted.insert(at).second) timers[at].calls += executions;
    }
  }
}

/// Adds the costs of fields that live within a step, after the timers of the stage that allocates or frees them.
void add_memory_timers(std::vector<NamedTimer>& timers, const Run& run, int stage) {
  const auto number = static_cast<std::size_t>(stage);
  if (!run.temporaries() || number >= run.temporaries()->spent().size()) return;
  const FreedTemporaries::Spent& spent = run.temporaries()->spent()[number];
  const std::string& name = run.stage(stage).stage().name;
  if (spent.allocated > 0) timers.push_back({name, "allocate", Component::memory, spent.allocated, spent.allocating_s});
  if (spent.freed > 0) timers.push_back({name, "free", Component::memory, spent.freed, spent.freeing_s});
}

Json phases_json(MPI_Comm comm, const Run& run, double steps) {
  const auto& stages = run.candidate().step.stages;
  const bool reduces = std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return !s.reductions.empty(); });
  const auto seconds = run.seconds();
  std::vector<std::string> names;
  std::vector<double> values;
  for (int t = 0; t < timer_count; ++t) {
    const auto timer = static_cast<Timer>(t);
    const bool of_device = timer == Timer::d2h || timer == Timer::h2d;
    if ((of_device && !run.device()) || (timer == Timer::reduce && !reduces)) continue;
    names.emplace_back(to_string(timer));
    values.push_back(seconds[t] / steps);
  }
  Json json;
  const std::vector<Json> spreads = over_ranks(values, comm);
  for (std::size_t i = 0; i < names.size(); ++i) json[names[i]] = spreads[i];
  return json;
}

/// Events of each timer per step, the mean over ranks.
void add_events(MPI_Comm comm, Json& json, const std::vector<NamedTimer>& timers, double steps,
                const std::vector<std::string>& names) {
  std::vector<double> counts;
  for (const NamedTimer& timer : timers)
    for (std::size_t e = 0; e < names.size(); ++e)
      counts.push_back(e < timer.events.size() ? timer.events[e] / steps : 0.0);
  const std::vector<Json> spreads = over_ranks(counts, comm);
  for (std::size_t i = 0; i < spreads.size(); ++i)
    json[i / names.size()]["events"][names[i % names.size()]] = spreads[i].value("mean", 0.0);
}

}  // namespace

std::string timer_name(const BoundStage& stage, const Program& program, const Op& op) {
  const Stage& spec = stage.stage();
  if (op.kind == OpKind::sweep) {
    const auto number = static_cast<std::size_t>(program.sweeps[op.target].number);
    return spec.sweeps[number].name.empty() ? "sweep" : spec.sweeps[number].name;
  }
  if (op.kind == OpKind::reduce || op.kind == OpKind::reduced) return stage.reduction(op.target).name;
  if (op.kind == OpKind::copy && at_edges(program, stage.plan(), op)) return "edges";
  return to_string(op.kind);
}

std::vector<NamedTimer> timers_of(const Run& run, double measured_s) {
  std::vector<NamedTimer> timers;
  for (int stage = 0; stage < run.stages(); ++stage) {
    add_timers(timers, run.stage(stage));
    add_memory_timers(timers, run, stage);
  }
  double named = 0;
  for (const NamedTimer& timer : timers) named += timer.seconds;
  timers.push_back({"", "rest", Component::rest, 0, std::max(0.0, measured_s - named)});
  return timers;
}

std::vector<Json> over_ranks(const std::vector<double>& mine, MPI_Comm comm) {
  int size = 0, rank = 0;
  REQUIRE_MPI(MPI_Comm_size(comm, &size));
  REQUIRE_MPI(MPI_Comm_rank(comm, &rank));
  const std::size_t count = mine.size();
  std::vector<double> all(count * static_cast<std::size_t>(rank == 0 ? size : 0));
  REQUIRE_MPI(MPI_Gather(mine.data(), static_cast<int>(count), MPI_DOUBLE, all.data(), static_cast<int>(count),
                         MPI_DOUBLE, 0, comm));
  std::vector<Json> spreads(count, Json::object());
  for (std::size_t i = 0; rank == 0 && i < count; ++i) {
    std::vector<double> one;
    for (std::size_t r = 0; r < static_cast<std::size_t>(size); ++r) one.push_back(all[r * count + i]);
    std::sort(one.begin(), one.end());
    spreads[i] = {{"rank0", mine[i]},
                  {"min", one.front()},
                  {"q1", model::quantile(one, 0.25)},
                  {"median", model::quantile(one, 0.5)},
                  {"q3", model::quantile(one, 0.75)},
                  {"mean", std::accumulate(one.begin(), one.end(), 0.0) / size},
                  {"max", one.back()}};
  }
  return spreads;
}

Json times_json(MPI_Comm comm, const Run& run, double steps, double last_steps, double measured_s,
                const std::vector<std::string>& events) {
  const std::vector<NamedTimer> timers = timers_of(run, measured_s);
  std::vector<double> sums(Words<Component>::all().size());
  std::vector<double> values;
  for (const NamedTimer& timer : timers) {
    values.push_back(timer.seconds / steps);
    sums[static_cast<std::size_t>(timer.component)] += timer.seconds / steps;
  }
  values.insert(values.end(), sums.begin(), sums.end());
  const std::vector<Json> spreads = over_ranks(values, comm);
  Json json{{"phases_s", phases_json(comm, run, steps)}, {"timers", Json::array()}, {"components_s", Json::object()}};
  for (std::size_t i = 0; i < timers.size(); ++i)
    json["timers"].push_back({{"stage", timers[i].stage},
                              {"name", timers[i].name},
                              {"component", to_word(timers[i].component)},
                              {"calls", static_cast<double>(timers[i].calls) / last_steps},
                              {"seconds", spreads[i]}});
  if (!events.empty()) add_events(comm, json["timers"], timers, steps, events);
  for (std::size_t c = 0; c < sums.size(); ++c)
    json["components_s"][to_word(static_cast<Component>(c))] = spreads[timers.size() + c];
  return json;
}

}  // namespace haloscope
