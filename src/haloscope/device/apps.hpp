// The table of a back end's kernels, those of all apps. Included once per back end, after its launch().
//
// A form gives a stencil layer by layer of the last dimension, with the operations of a point in the order that defines
// its bits (kernels/kernel.hpp): a layer's part of a sum does not depend on which thread adds the others.
//
// Every form: `sum` plus what layer K (-1, 0, +1) adds to a point; K = -1 begins the sum. at(i, j) is the cell i
// further in x (and, in three dimensions, j further in y) of that layer, for the (i, j) that reads() has. `ahead`:
// layers that a thread can hold in registers while a thousand threads still fit. `fused`: most time steps that one
// launch fuses, 1 where a stencil reads too much for that. `rows`: of cells, that a thread sweeps at once.
#pragma once

#include "haloscope/apps/device.hpp"  // made by cmake/app_kernels.cmake
#include "haloscope/device/blocks_kernel.hpp"
#include "haloscope/device/exchange_kernel.hpp"
#include "haloscope/device/gather_kernel.hpp"
#include "haloscope/device/launch.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

inline const Kernels& kernel_table() {
  static const Kernels table = [] {
    Kernels k;
    k.copy = launch_copies;
    k.gather = launch_gather;
    k.find_poison = launch_poison_search;
    k.blocks = blocks_kernels();
    k.exchange = exchange_kernels();
#define ADD(name) add_##name(k);
    HALOSCOPE_APPS_WITH_DEVICE(ADD)
#undef ADD
    return k;
  }();
  return table;
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
