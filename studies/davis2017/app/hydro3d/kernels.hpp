// The kernels of hydro3d, in all forms. Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/hydro3d/passes.hpp"
#include "haloscope/kernels/kernel_table.hpp"

namespace haloscope::HALOSCOPE_ISA {

namespace hydro {

/// Runs a separate pass over the fields for each part of a step.
template <class Way, Order order>
HALOSCOPE_KERNEL void run_kernel(const KernelArgs& args) {
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

}  // namespace hydro

inline void add_hydro3d(KernelTable& table, const char* isa) {
  const auto add = [&](const char* form, void (*run)(const KernelArgs&)) {
    table.add({form, Real::f64, {run, nullptr, nullptr, isa}});
  };
  add("hydro3d-fused", hydro::run_fused<hydro::Ahead>);
  add("hydro3d-vector", hydro::run_kernel<hydro::Plainly<full_lanes<double>>, hydro::Order::rows>);
  add("hydro3d-lines", hydro::run_kernel<hydro::Plainly<1>, hydro::Order::lines>);
  add("hydro3d-arrays", hydro::run_kernel<hydro::Plainly<1>, hydro::Order::arrays>);
  add("hydro3d-scalar", hydro::run_kernel<hydro::Plainly<1>, hydro::Order::rows>);
}

}  // namespace haloscope::HALOSCOPE_ISA
