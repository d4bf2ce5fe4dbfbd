// Limits on the stay of kernels that wait for the CPU. Plain values, no device code.
#pragma once

#include <cstdint>

#include "haloscope/both_sides.hpp"

namespace haloscope::device {

/// A kernel that waits leaves the device in the end, so that a kernel whose CPU is busy, was stopped or has died holds
/// up no other work; the CPU does the rest, or launches it again, once that is possible.
struct Stay {
  const std::uint32_t* stop = nullptr;      ///< in mapped memory; not 0: leave now. Null: no stop is requested
  std::uint64_t ticks = ~std::uint64_t{0};  ///< of the device's clock; by default unlimited
};

}  // namespace haloscope::device
