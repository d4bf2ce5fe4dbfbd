// The kernels of hydro3d, in all forms. Included through kernels/apps.hpp only (see simd.hpp for why).
#pragma once

#include "haloscope/apps/hydro3d/arrays.hpp"
#include "haloscope/apps/hydro3d/fused.hpp"
#include "haloscope/apps/hydro3d/gather.hpp"
#include "haloscope/apps/hydro3d/lagrange.hpp"
#include "haloscope/apps/hydro3d/remap.hpp"
#include "haloscope/apps/hydro3d/summary.hpp"

namespace haloscope::HALOSCOPE_ISA {

namespace hydro {

/// Turns of the remap, and what follows each of them. @return whether `number` is one of these.
template <class Way, Order order>
bool run_remap(const KernelArgs& args) {
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

/// A pass over the fields for each part of a step.
template <class Way, Order order>
void run_kernel(const KernelArgs& args) {
  if (run_remap<Way, order>(args)) return;
  if (args.number == kernel_summary) return gather_summary<Way>(args);
  if (args.number >= kernel_faces) return sweep_faces<Way>(args, args.number - kernel_faces);
  using Sweep = void (*)(const KernelArgs&);
  static constexpr Sweep kernels[kernel_return_nodes] = {viscosity_of_cells<Way>,
                                                         gather_rates<Way>,
                                                         gather_totals<Way>,
                                                         gather_nodes<Way>,
                                                         compress_cells<Way, Moment::half, Gas::apart>,
                                                         state_of_cells<Way, other_density, other_energy>,
                                                         accelerate_nodes<Way, false>,
                                                         compress_cells<Way, Moment::whole, Gas::apart>,
                                                         state_of_cells<Way, density, energy>,
                                                         return_cells<Way>};
  kernels[args.number](args);
}

/// As few passes as the step allows.
inline void run_fused(const KernelArgs& args) {
  if (run_remap<Ahead, Order::rows>(args)) return;
  switch (args.number) {
    case kernel_viscosity:
      return viscosity_of_cells<Ahead>(args);
    case kernel_limits:
      return limit_cells<Ahead>(args);
    case kernel_totals:
      return gather_totals<Ahead>(args);
    case kernel_predict_pressure:
      return compress_cells<Ahead, Moment::half, Gas::at_once>(args);
    case kernel_accelerate_first:
      return accelerate_nodes<Ahead, true>(args);
    case kernel_accelerate:
      return accelerate_nodes<Ahead, false>(args);
    case kernel_correct_pressure:
      return compress_cells<Ahead, Moment::whole, Gas::at_once>(args);
    case kernel_summary:
      return gather_summary<Ahead>(args);
    default:
      return return_gas<Ahead>(args);
  }
}

}  // namespace hydro

inline void add_hydro3d(IsaTable& table, const char* isa) {
  const auto add = [&](const char* form, void (*run)(const KernelArgs&)) {
    table.add({form, Real::f64, {run, nullptr, nullptr, isa}});
  };
  add("hydro3d-fused", hydro::run_fused);
  add("hydro3d-vector", hydro::run_kernel<hydro::Plainly<full_lanes<double>>, hydro::Order::rows>);
  add("hydro3d-lines", hydro::run_kernel<hydro::Plainly<1>, hydro::Order::lines>);
  add("hydro3d-arrays", hydro::run_kernel<hydro::Plainly<1>, hydro::Order::arrays>);
  add("hydro3d-scalar", hydro::run_kernel<hydro::Plainly<1>, hydro::Order::rows>);
}

}  // namespace haloscope::HALOSCOPE_ISA
