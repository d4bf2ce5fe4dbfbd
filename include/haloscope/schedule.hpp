// Schedules: (stage, plan, options) -> program. One file per schedule, one registry line each (registry.cpp).
#pragma once

#include <string>
#include <vector>

#include "haloscope/program.hpp"

namespace haloscope {

struct Schedule {
  std::string name;
  std::string summary;  ///< one sentence for help texts
  Program (*make)(const Stage&, const Plan&, const ScheduleOptions&);
};

/// All schedules, in the order of the help text.
const std::vector<Schedule>& schedules();
/// @throws UsageError naming the nearest valid names.
const Schedule& find_schedule(const std::string& name);

/// Only the exchange, no sweep: what the Exchange class runs. All operations are on the `comm` lane.
Program exchange_program(const Plan& plan, bool barrier = false, bool collective_rounds = false);

}  // namespace haloscope
