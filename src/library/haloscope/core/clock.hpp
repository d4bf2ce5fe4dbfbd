// The clock of timers and timelines.
#pragma once

#include <ctime>

namespace haloscope {

/// Returns the seconds of a monotonic clock with the same origin for all processes of one machine. Uses its POSIX
/// name, so that a simulated MPI can replace it.
inline double now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace haloscope
