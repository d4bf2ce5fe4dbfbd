// Schedules: *when* things happen. A schedule makes the program of one stage from its sweeps and its plan. No MPI.
#pragma once

#include "haloscope/cxx20.hpp"

#include <string>
#include <vector>

#include "haloscope/program.hpp"

namespace haloscope {

struct Candidate;

/// A way to order a stage's operations, with everything that legality, help texts and figures must know about it.
struct Schedule {
  std::string name;
  std::string summary;  ///< one sentence for help texts
  std::string colour;   ///< in figures
  Program (*make)(const Stage&, const Plan&, const ScheduleOptions&);
  std::vector<std::string> options = {};  ///< schedule-only fields of a choice that this schedule reads
  bool plain = false;                     ///< exchange and sweeps take turns, so that even `reference` can serve it
  bool on_host = true;                    ///< for fields in host memory ...
  bool on_device = false;                 ///< ... for fields on a device
  bool boxed = false;                     ///< ... for both: a device's block in walls of the host, which sends messages
  bool deep = true;                       ///< takes depths above 1 ...
  bool blocked = false;                   ///< ... and fuses their steps, where there are kernels for that
  bool in_place = false;                  ///< for sweeps in place, and only those
  bool computes_on_host = true;           ///< threads of a rank have work
  bool one_sweep = false;                 ///< only for steps of one sweep over one quantity
  /// Why it cannot arrange a candidate, and what to do about it; empty when it can. Null: it always can.
  std::string (*illegal)(const Candidate&) = nullptr;
};

/// All schedules, in the order of help texts: those of this library, then added ones.
const std::vector<const Schedule*>& schedules();
/// @throws UsageError naming the nearest valid names.
const Schedule& find_schedule(const std::string& name);
/// Make your own schedule known. `schedule` must live until the end. @throws UsageError for a name that is taken.
void add_schedule(const Schedule& schedule);

/// A schedule by its name, looked up once.
class ScheduleName {
 public:
  ScheduleName(const std::string& name) : schedule_(&find_schedule(name)) {}  // implicit: a name is what users write
  ScheduleName(const char* name) : ScheduleName(std::string(name)) {}
  ScheduleName(const Schedule& schedule) : schedule_(&schedule) {}
  const Schedule* operator->() const { return schedule_; }
  const Schedule& operator*() const { return *schedule_; }
  bool operator==(const ScheduleName&) const = default;

 private:
  const Schedule* schedule_;
};

/// Only the exchange, no sweep: what the Exchange class runs. All operations are on the `comm` lane.
Program exchange_program(const Plan& plan, bool barrier = false, bool collective_rounds = false);
/// The same for fields in any memory: what touches them on a device is on its `halo_stream`, as `options` say.
Program exchange_program(const Plan& plan, const ScheduleOptions& options);

}  // namespace haloscope
