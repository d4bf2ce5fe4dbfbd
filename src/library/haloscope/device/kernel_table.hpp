// The table of a back end's kernels: the library's, then the kernels of the known apps. Included once per back end,
// after its launch().
#pragma once

#include "haloscope/device/clock_kernel.hpp"
#include "haloscope/device/exchange_kernel.hpp"
#include "haloscope/device/gather_kernel.hpp"
#include "haloscope/device/launch.hpp"

#define HALOSCOPE_QUOTED_WORD(word) #word
#define HALOSCOPE_QUOTED(macro) HALOSCOPE_QUOTED_WORD(macro)

namespace haloscope::device::HALOSCOPE_BACKEND {

inline Kernels kernel_table() {
  Kernels k;
  k.copy = launch_copies;
  k.gather = launch_gather;
  k.find_poison = launch_poison_search;
  k.clock = launch_clock;
  k.exchange = exchange_kernels();
  add_kernels_of_apps(k, HALOSCOPE_QUOTED(HALOSCOPE_BACKEND));
  return k;
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
