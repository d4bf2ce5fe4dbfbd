// Events of traces.
#pragma once

#include <cstdint>

namespace haloscope {

/// One executed operation of a trace. Times in seconds since an arbitrary origin.
struct TraceEvent {
  std::int32_t op = 0;
  std::int64_t program = 0;  ///< number of the program execution
  std::int64_t step = 0;     ///< first time step of that execution
  double begin_s = 0, end_s = 0;
};

}  // namespace haloscope
