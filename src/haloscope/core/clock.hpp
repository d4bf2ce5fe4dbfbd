// The clock of timers and timelines.
#pragma once

#include <ctime>

namespace haloscope {

/// Seconds of a clock that never goes back; the same origin for all processes of one machine. The system's clock by its
/// POSIX name, which a simulated MPI replaces by its own.
inline double now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace haloscope
