// Schedules: the orders of operations. A schedule makes the program of one stage from its sweeps and its plan. No
// MPI.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <string>
#include <vector>

#include "haloscope/extend/program.hpp"

namespace haloscope {

struct Candidate;

/// A way to order a stage's operations, with all properties that legality, help texts and figures use.
struct Schedule {
  std::string name;
  std::string summary;  ///< one sentence for help texts
  std::string colour;   ///< in figures
  Program (*make)(const Stage&, const Plan&, const ScheduleOptions&);
  std::vector<std::string> options = {};  ///< fields of a choice that only schedules read, and this one does
  bool plain = false;                     ///< exchange and sweeps take turns, so that even `reference` supports it
  bool on_host = true;                    ///< for fields in host memory ...
  bool on_device = false;                 ///< ... for fields on a device
  bool boxed = false;                     ///< ... for both: a device's block in host walls; the host sends
  bool deep = true;                       ///< supports depths above 1 ...
  bool blocked = false;                   ///< ... and fuses their steps, where kernels for that exist
  bool in_place = false;                  ///< only for sweeps in place
  bool computes_on_host = true;           ///< the threads of a rank compute
  bool one_sweep = false;                 ///< only for steps of one sweep over one quantity
  /// Returns the reason why it cannot order a candidate's operations, and the remedy; empty if it can. Null: it
  /// always can.
  std::string (*illegal)(const Candidate&) = nullptr;
};

/// Returns all schedules, in the order of help texts: the schedules of this library, then added ones.
const std::vector<const Schedule*>& schedules();
/// Returns the schedule of that name. @throws UsageError naming the nearest valid names.
const Schedule& find_schedule(const std::string& name);
/// Registers a schedule, which must live until the program ends. @throws UsageError for a name that is taken.
void add_schedule(const Schedule& schedule);

/// A schedule by its name, looked up once.
class ScheduleName {
 public:
  ScheduleName(const std::string& name) : schedule_(&find_schedule(name)) {}  // implicit: users write names
  ScheduleName(const char* name) : ScheduleName(std::string(name)) {}
  ScheduleName(const Schedule& schedule) : schedule_(&schedule) {}
  const Schedule* operator->() const { return schedule_; }
  const Schedule& operator*() const { return *schedule_; }
  bool operator==(const ScheduleName&) const = default;

 private:
  const Schedule* schedule_;
};

/// Returns the program of an exchange without sweeps, which the Exchange class runs. All operations are on the `comm`
/// lane.
Program exchange_program(const Plan& plan, bool barrier = false, bool collective_rounds = false);
/// The same for fields in any memory: with ScheduleOptions::device, operations that access them are on the
/// `halo_stream`.
Program exchange_program(const Plan& plan, const ScheduleOptions& options);

}  // namespace haloscope
