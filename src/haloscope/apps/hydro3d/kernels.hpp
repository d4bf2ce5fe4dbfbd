// The kernels of hydro3d, as scalar and as vector code. Included through kernels/apps.hpp only (see simd.hpp for why).
#pragma once

#include "haloscope/apps/hydro3d/gather.hpp"
#include "haloscope/apps/hydro3d/lagrange.hpp"
#include "haloscope/apps/hydro3d/remap.hpp"

namespace haloscope::HALOSCOPE_ISA {

namespace hydro {

/// By Kernel. `Most` lanes in a vector.
template <int Most, Order order>
void run_kernel(const KernelArgs& args) {
  const int number = args.number;
  if (number >= kernel_heat_other) return heat_cells<Most>(args, number == kernel_heat_other);
  if (number >= kernel_nodes) {
    const int turn = number - kernel_nodes;
    return remap_nodes<Most, order>(args, {turn % 3, turn >= 3});
  }
  if (number >= kernel_cells) {
    const int turn = number - kernel_cells;
    return remap_cells<Most, order>(args, {turn % 3, turn >= 3});
  }
  using Sweep = void (*)(const KernelArgs&);
  static constexpr Sweep kernels[kernel_cells] = {
      viscosity_of_cells<Most>, gather_rates<Most>,  gather_totals<Most>,
      gather_nodes<Most>,       predict_cells<Most>, state_of_cells<Most, other_density, other_energy>,
      accelerate_nodes<Most>,   correct_cells<Most>, state_of_cells<Most, density, energy>,
      return_cells<Most>,       return_nodes<Most>,  sweep_faces<Most, 0>,
      sweep_faces<Most, 1>,     sweep_faces<Most, 2>};
  kernels[number](args);
}

}  // namespace hydro

inline void add_hydro3d(IsaTable& table, const char* isa) {
  table.add({"hydro3d-vector",
             Real::f64,
             {hydro::run_kernel<full_lanes<double>, hydro::Order::rows>, nullptr, nullptr, isa}});
  table.add({"hydro3d-lines", Real::f64, {hydro::run_kernel<1, hydro::Order::lines>, nullptr, nullptr, isa}});
  table.add({"hydro3d-scalar", Real::f64, {hydro::run_kernel<1, hydro::Order::rows>, nullptr, nullptr, isa}});
}

}  // namespace haloscope::HALOSCOPE_ISA
