// What launches of kernels that wait for the CPU share: how long they wait. Plain values, no device code.
#pragma once

#include <cstdint>

#include "haloscope/both_sides.hpp"

namespace haloscope::device {

struct Patience {
  const std::uint32_t* stop = nullptr;  ///< in mapped memory; not 0: end now. Null: nobody says so
  std::uint64_t ticks = 0;              ///< of the device's clock; whoever would set `stop` may have died
};

}  // namespace haloscope::device
