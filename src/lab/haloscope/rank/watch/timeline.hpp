// The time of every rank: seconds by phase, operation and MPI call for the record, and a trace for Chrome or
// Perfetto with one process per rank.
#pragma once

#include <mpi.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "haloscope/rank/watch/mpi_calls.hpp"
#include "haloscope/runner/runner.hpp"

namespace haloscope {

/// One bar of a trace. Times in seconds of std::chrono::steady_clock.
struct TimelineEvent {
  std::string name;
  std::string row;  ///< a lane, "mpi" or "epochs"
  double begin_s = 0, end_s = 0;
  std::int64_t step = 0;
  int op = -1;             ///< operation of the program, -1: none
  std::int64_t calls = 1;  ///< MPI calls that the bar stands for
  std::string stage = {};  ///< of the step; "" where it is of none
  std::string timer = {};  ///< the timer that the operation counts for: a sweep's or reduction's name
  double blocked_s = 0;    ///< within an epoch
};

/// The operations that a runner traced.
std::vector<TimelineEvent> events_of(const Runner& runner);
/// The MPI calls and the epochs that a clock traced.
std::vector<TimelineEvent> events_of(const MpiClock& clock);

/// Clock of this rank minus that of rank 0, in seconds; its uncertainty is half the round trip that measured it.
struct ClockOffset {
  double seconds = 0, uncertainty_s = 0;
};
/// By the fastest of `trips` round trips between rank 0 and each rank. Collective over `comm`.
ClockOffset clock_offset(MPI_Comm comm, int trips = 32);

/// All ranks' events in one file, in Chrome's trace format (an array of events), in the time of rank 0. Collective.
/// @throws Error on all ranks if rank 0 cannot write the file.
void write_trace(MPI_Comm comm, const std::string& file, const std::vector<TimelineEvent>& mine);

/// The times of one rank, in seconds over all measured repetitions.
struct RankTimes {
  double measured_s = 0;
  nlohmann::json phases_s = nlohmann::json::object();      ///< by timer
  nlohmann::json operations_s = nlohmann::json::object();  ///< by kind of operation
  std::vector<MpiCall> mpi;
  std::vector<EpochSum> epochs;

  void add(const Runner& runner);
};
/// The record's "timeline": one entry per rank, on rank 0. Collective over `comm`.
nlohmann::json timeline_json(MPI_Comm comm, const RankTimes& mine);

}  // namespace haloscope
