#include "haloscope/rank/watch/events.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace haloscope {

namespace {

struct EventKind {
  std::string name;
  std::uint32_t type;
  std::uint64_t config;
};

constexpr std::uint64_t l1_data(std::uint64_t result) {
  return PERF_COUNT_HW_CACHE_L1D | (PERF_COUNT_HW_CACHE_OP_READ << 8) | (result << 16);
}

/// An event by its number and mask, as the processor's manual lists it.
constexpr std::uint64_t raw(std::uint64_t number, std::uint64_t mask) { return number | mask << 8; }

/// Floating-point operations have no name common to all processors: AMD counts operations (retired SSE and AVX
/// operations, event 0x03), Intel instructions by width (event 0xC7, double precision).
std::vector<EventKind> event_kinds() {
  std::vector<EventKind> kinds{{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                               {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                               {"l1-reads", PERF_TYPE_HW_CACHE, l1_data(PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
                               {"l1-misses", PERF_TYPE_HW_CACHE, l1_data(PERF_COUNT_HW_CACHE_RESULT_MISS)},
                               {"cache-reads", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
                               {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}};
  if (__builtin_cpu_is("amd")) {
    kinds.push_back({"flops", PERF_TYPE_RAW, raw(0x03, 0x0f)});
  } else if (__builtin_cpu_is("intel")) {
    kinds.push_back({"scalar-double", PERF_TYPE_RAW, raw(0xc7, 0x01)});
    kinds.push_back({"vector-2-double", PERF_TYPE_RAW, raw(0xc7, 0x04)});
    kinds.push_back({"vector-4-double", PERF_TYPE_RAW, raw(0xc7, 0x10)});
    kinds.push_back({"vector-8-double", PERF_TYPE_RAW, raw(0xc7, 0x40)});
  }
  kinds.push_back({"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS});
  return kinds;
}

/// Counts this thread's own events, in user mode, as any user may; -1 and errno when it cannot.
int open_event(const EventKind& kind) {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = kind.type;
  attributes.config = kind.config;
  attributes.exclude_kernel = kind.type != PERF_TYPE_SOFTWARE;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::string reason(int error) {
  if (error == ENOENT || error == EOPNOTSUPP) return "this processor, or this virtual machine, does not count it";
  if (error == EACCES || error == EPERM)
    return "the system does not allow it; see /proc/sys/kernel/perf_event_paranoid";
  return std::strerror(error);
}

}  // namespace

EventCounters::EventCounters() {
  for (const EventKind& kind : event_kinds()) {
    const int file = open_event(kind);
    if (file < 0) {
      absent_[kind.name] = reason(errno);
      continue;
    }
    names_.push_back(kind.name);
    files_.push_back(file);
  }
}

EventCounters::~EventCounters() {
  for (int file : files_) close(file);
}

void EventCounters::read(double* into) const {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    std::uint64_t value[3]{};  // count, time enabled, time running
    if (::read(files_[i], value, sizeof value) != sizeof value || value[2] == 0)
      into[i] = 0;
    else
      into[i] = static_cast<double>(value[0]) * (static_cast<double>(value[1]) / static_cast<double>(value[2]));
  }
}

}  // namespace haloscope
