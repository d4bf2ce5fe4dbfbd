// Kernels of Gray-Scott for one instruction set of the CPU. haloscope_add_app() compiles them once per set.
#pragma once

#include "react.hpp"

namespace haloscope::HALOSCOPE_ISA {

struct VectorRow {
  template <class F>
  HALOSCOPE_INLINE static void along(std::int64_t n, const F& f) {
    HALOSCOPE_ISA::along(n, f);
  }
};

inline void add_gray_scott(KernelTable& table, const char* isa) {
  table.add({"gray-scott", Real::f64, {.sweep = gray_scott::react<VectorRow>, .isa = isa}});
}

}  // namespace haloscope::HALOSCOPE_ISA
