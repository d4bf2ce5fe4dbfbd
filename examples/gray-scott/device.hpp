// Kernels of Gray-Scott for one back end of devices. haloscope_add_app() compiles them once per back end.
#pragma once

#include <haloscope/device/pass_kernel.hpp>

#define HALOSCOPE_ISA device::HALOSCOPE_BACKEND::points
#include "react.hpp"
#undef HALOSCOPE_ISA

namespace haloscope::device::HALOSCOPE_BACKEND {

struct CellRow {
  template <class F>
  HALOSCOPE_FUNCTION static void along(std::int64_t, const F& f) {
    f(points::Lanes<1>{}, 0);  // a thread has one cell
  }
};

struct GrayScottPasses {
  static constexpr int fields = 2, weights = 5, count = 1, scratch = 1;
  static constexpr bool has(int number) { return number == 0; }
  static constexpr bool over_points(int) { return false; }
  HALOSCOPE_FUNCTION static void run(const KernelArgs& args) { points::gray_scott::react<CellRow>(args); }
};

inline void add_gray_scott(Kernels& kernels) { kernels.passes.push_back({"gray-scott", run_pass<GrayScottPasses>}); }

}  // namespace haloscope::device::HALOSCOPE_BACKEND
