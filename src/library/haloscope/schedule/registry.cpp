#include "haloscope/core/names.hpp"
#include "haloscope/error.hpp"
#include "haloscope/schedule.hpp"

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

const Schedule& find_schedule(const std::string& name) {
  for (const Schedule* s : known_schedules())
    if (s->name == name) return *s;
  std::vector<std::string> valid;
  for (const Schedule* s : known_schedules()) valid.push_back(s->name);
  throw UsageError(unknown_name("schedule", name, valid));
}

void add_schedule(const Schedule& schedule) {
  for (const Schedule* s : known_schedules())
    if (s->name == schedule.name)
      throw UsageError("schedule '" + schedule.name + "' already exists; give yours another name");
  known_schedules().push_back(&schedule);
}

}  // namespace haloscope
