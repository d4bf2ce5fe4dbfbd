// Events that the processor and the system count for a thread: cycles, cache misses, floating-point operations, page
// faults. Linux counts them where the machine lets it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace haloscope {

class EventCounters {
 public:
  /// Opens the counters of the calling thread; counters that the machine lacks are in absent().
  EventCounters();
  ~EventCounters();
  EventCounters(const EventCounters&) = delete;
  EventCounters& operator=(const EventCounters&) = delete;

  /// Returns the names of the counted events, in the order of read().
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the events that are not counted, with the reasons.
  const std::map<std::string, std::string>& absent() const { return absent_; }
  /// Events so far, one number for each name. Where the processor has fewer counters than there are events, they take
  /// turns, and a number is scaled to the whole time. Cost: a system call for each name.
  void read(double* into) const;
  /// The same as a callback of the runner. @param self  the counters.
  static void read_into(void* self, double* into) { static_cast<const EventCounters*>(self)->read(into); }

 private:
  std::vector<std::string> names_;
  std::vector<int> files_;
  std::map<std::string, std::string> absent_;
};

}  // namespace haloscope
