// The kernels of hydro3d by their numbers. Included through kernels.hpp or device.hpp only.
#pragma once

#include "davis2017/app/hydro3d/arrays.hpp"
#include "davis2017/app/hydro3d/fused.hpp"
#include "davis2017/app/hydro3d/gather.hpp"
#include "davis2017/app/hydro3d/lagrange.hpp"
#include "davis2017/app/hydro3d/remap.hpp"
#include "davis2017/app/hydro3d/summary.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

/// Runs turns of the remap and the heating and return of nodes. @return true if `number` is one of these kernels.
template <class Way, Order order>
HALOSCOPE_KERNEL bool run_remap(const KernelArgs& args) {
  const int number = args.number;
  if (number == kernel_heat || number == kernel_heat_other)
    return heat_cells<Way>(args, number == kernel_heat_other), true;
  if (number >= kernel_cells && number < kernel_heat_other) {
    const bool of_cells = number < kernel_nodes;
    const int turned = number - (of_cells ? kernel_cells : kernel_nodes);
    const Turn turn{turned % 3, turned >= 3};
    if constexpr (order == Order::arrays)
      of_cells ? remap_cells_in_arrays<Way>(args, turn) : remap_nodes_in_arrays<Way>(args, turn);
    else
      of_cells ? remap_cells<Way, order>(args, turn) : remap_nodes<Way, order>(args, turn);
    return true;
  }
  if (number == kernel_return_nodes) return return_nodes<Way>(args), true;
  return false;
}

/// Runs as few passes as the step allows: form `fused`.
template <class Way>
HALOSCOPE_KERNEL void run_fused(const KernelArgs& args) {
  if (run_remap<Way, Order::rows>(args)) return;
  switch (args.number) {
    case kernel_viscosity:
      return viscosity_of_cells<Way>(args);
    case kernel_limits:
      return limit_cells<Way>(args);
    case kernel_totals:
      return gather_totals<Way>(args);
    case kernel_predict_pressure:
      return compress_cells<Way, Moment::half, Gas::at_once>(args);
    case kernel_accelerate_first:
      return accelerate_nodes<Way, true>(args);
    case kernel_accelerate:
      return accelerate_nodes<Way, false>(args);
    case kernel_correct_pressure:
      return compress_cells<Way, Moment::whole, Gas::at_once>(args);
    case kernel_summary:
      return gather_summary<Way>(args);
    default:
      return return_gas<Way>(args);
  }
}

}  // namespace haloscope::HALOSCOPE_ISA::hydro
