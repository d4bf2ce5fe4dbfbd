// The clock of timers and timelines.
#pragma once

#include <chrono>

namespace haloscope {

/// Seconds of a clock that never goes back; the same origin for all processes of one machine.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace haloscope
