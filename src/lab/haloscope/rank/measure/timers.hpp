// The time of a step over ranks: by phase, by named timer, by component.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "haloscope/rank/measure/run.hpp"

namespace haloscope {

/// Sums of timers (Davis 2017, section 5.1). `barrier` is the wait of ranks in barriers before exchanges, `rest` the
/// time that no timer accounts for.
enum class Component : std::uint8_t { compute, point_to_point, collectives, update_boundary, memory, barrier, rest };
HALOSCOPE_WORDS(Component, "component", "compute", "point_to_point", "collectives", "update_boundary", "memory",
                "barrier", "rest");

/// One named part of a step on this rank: a sweep, a reduction, or an operation of an exchange on all its messages.
struct NamedTimer {
  std::string stage, name;
  Component component = Component::rest;
  std::int64_t calls = 0;           ///< programs with it that ran since Run::reset_traces()
  double seconds = 0;               ///< since Run::reset_timers()
  std::vector<double> events = {};  ///< the same, where they are counted
};

/// Returns the name of the timer of an operation: a sweep, a reduction, or the kind of operation.
std::string timer_name(const BoundStage& stage, const Program& program, const Op& op);

/// The timers of a run, stage by stage, in the order of its operations; the last one is the rest of `measured_s`.
/// Operations of one name in a stage are one timer. Local.
std::vector<NamedTimer> timers_of(const Run& run, double measured_s);

/// rank0, min, quartiles, mean and max over ranks of each number, on rank 0; empty objects elsewhere. Collective; all
/// ranks pass equally many.
std::vector<nlohmann::json> over_ranks(const std::vector<double>& mine, MPI_Comm comm);

/// Returns the times of a record: `phases_s`, `timers` and `components_s`, all in seconds per step.
/// @param steps       of all measured repetitions.
/// @param last_steps  of the last one, which calls are counted in.
/// @param measured_s  of all repetitions on this rank.
/// @param events      names of the events that the runners count; each timer then has their number per step, the mean
///                    over ranks.
/// Collective.
nlohmann::json times_json(MPI_Comm comm, const Run& run, double steps, double last_steps, double measured_s,
                          const std::vector<std::string>& events);

}  // namespace haloscope
