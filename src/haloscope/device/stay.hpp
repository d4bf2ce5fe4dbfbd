// What launches of kernels that wait for the CPU share: how long they stay on the device. Plain values, no device code.
#pragma once

#include <cstdint>

#include "haloscope/both_sides.hpp"

namespace haloscope::device {

/// A kernel that waits leaves the device in the end, so that one whose CPU does something else, was stopped or has died
/// holds up no other work; the CPU does the rest, or launches it again, once that can be done.
struct Stay {
  const std::uint32_t* stop = nullptr;      ///< in mapped memory; not 0: leave now. Null: nothing says so
  std::uint64_t ticks = ~std::uint64_t{0};  ///< of the device's clock; by default as many as it takes
};

}  // namespace haloscope::device
