// hydro3d on devices: the kernels of the CPU's form `fused`, point by point.
#pragma once

#include "haloscope/device/pass_kernel.hpp"

#define HALOSCOPE_ISA device::HALOSCOPE_BACKEND::points
#include "davis2017/app/hydro3d/passes.hpp"
#undef HALOSCOPE_ISA

namespace haloscope::device::HALOSCOPE_BACKEND {

/// A thread has a row of one point, or of two or three if a kernel needs the adjacent points: so few that the values it
/// keeps stay in registers.
struct HydroRow {
  static constexpr int lanes = 1;
  static constexpr bool joins_faces = true, fetches = false;
  template <class F>
  HALOSCOPE_FUNCTION static void along(std::int64_t n, const F& f) {
    HALOSCOPE_UNROLL(3)
    for (int x = 0; x < 3; ++x)
      if (x < n) f(points::Lanes<1>{}, x);
  }
};

struct HydroPasses {
  static constexpr int fields = hydro::field_count, weights = hydro::weight_count, count = hydro::kernel_count;
  static constexpr int scratch = hydro::kept_rows * static_cast<int>(hydro::kept_pitch(2));
  static constexpr bool has(int number) {
    return number == hydro::kernel_viscosity || number == hydro::kernel_totals || number == hydro::kernel_accelerate ||
           number == hydro::kernel_return_nodes || number >= hydro::kernel_cells;
  }
  /// Returns true if a thread has a point to write, false if it has a cell and the points that belong to it.
  static constexpr bool over_points(int number) {
    return number == hydro::kernel_accelerate || number == hydro::kernel_accelerate_first ||
           number == hydro::kernel_return_nodes || (number >= hydro::kernel_nodes && number < hydro::kernel_heat_other);
  }
  HALOSCOPE_FUNCTION static void run(const KernelArgs& args) { points::hydro::run_fused<HydroRow>(args); }
};

inline void add_hydro3d(Kernels& kernels) { kernels.passes.push_back({"hydro3d-fused", run_pass<HydroPasses>}); }

}  // namespace haloscope::device::HALOSCOPE_BACKEND
