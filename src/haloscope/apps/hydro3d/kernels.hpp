// The kernels of hydro3d, as scalar and as vector code. Included through kernels/apps.hpp only (see simd.hpp for why).
#pragma once

#include "haloscope/apps/hydro3d/gather.hpp"
#include "haloscope/apps/hydro3d/lagrange.hpp"
#include "haloscope/apps/hydro3d/remap.hpp"

namespace haloscope::HALOSCOPE_ISA {

namespace hydro {

/// By Kernel. `Most` lanes in a vector.
template <int Most>
void run_kernel(const KernelArgs& args) {
  using Sweep = void (*)(const KernelArgs&);
  static constexpr Sweep kernels[kernel_count] = {
      viscosity_of_cells<Most>,    gather_rates<Most>,          gather_totals<Most>,
      gather_nodes<Most>,          predict_cells<Most>,         state_of_cells<Most, other_density, other_energy>,
      accelerate_nodes<Most>,      correct_cells<Most>,         state_of_cells<Most, density, energy>,
      return_cells<Most>,          return_nodes<Most>,          sweep_faces<Most, 0>,
      sweep_faces<Most, 1>,        sweep_faces<Most, 2>,        remap_cells<Most, 0, false>,
      remap_cells<Most, 1, false>, remap_cells<Most, 2, false>, remap_cells<Most, 0, true>,
      remap_cells<Most, 1, true>,  remap_cells<Most, 2, true>,  remap_nodes<Most, 0, false>,
      remap_nodes<Most, 1, false>, remap_nodes<Most, 2, false>, remap_nodes<Most, 0, true>,
      remap_nodes<Most, 1, true>,  remap_nodes<Most, 2, true>,  heat_cells<Most, true>,
      heat_cells<Most, false>};
  kernels[args.number](args);
}

}  // namespace hydro

inline void add_hydro3d(IsaTable& table, const char* isa) {
  table.add({"hydro3d-vector", Real::f64, {hydro::run_kernel<full_lanes<double>>, nullptr, nullptr, isa}});
  table.add({"hydro3d-scalar", Real::f64, {hydro::run_kernel<1>, nullptr, nullptr, isa}});
}

}  // namespace haloscope::HALOSCOPE_ISA
