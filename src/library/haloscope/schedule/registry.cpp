#include "haloscope/core/names.hpp"
#include "haloscope/extend/schedule.hpp"

namespace haloscope {

#define SCHEDULE(name) extern const Schedule name##_schedule;
#include "haloscope/schedule/schedules.def"
#undef SCHEDULE

namespace {

std::vector<const Schedule*>& known_schedules() {
  static std::vector<const Schedule*> all{
#define SCHEDULE(name) &name##_schedule,
#include "haloscope/schedule/schedules.def"
#undef SCHEDULE
  };
  return all;
}

}  // namespace

const std::vector<const Schedule*>& schedules() { return known_schedules(); }

const Schedule& find_schedule(const std::string& name) { return find_named("schedule", known_schedules(), name); }

void add_schedule(const Schedule& schedule) {
  require_new("schedule", known_schedules(), schedule.name);
  known_schedules().push_back(&schedule);
}

}  // namespace haloscope
