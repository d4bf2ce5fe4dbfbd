// Kernels of poisson2d. Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/kernel_table.hpp"
#include "schroeter2021/app/fused.hpp"
#include "schroeter2021/app/jacobi.hpp"

namespace haloscope::HALOSCOPE_ISA {

inline void add_poisson2d(KernelTable& table, const char* isa) {
  table.add({"poisson2d-jacobi", Real::f64, {jacobi, nullptr, nullptr, isa}});
  table.add({"poisson2d-gauss-seidel", Real::f64, {gauss_seidel, gauss_seidel_fused, fused_sweeps_scratch, isa}});
}

}  // namespace haloscope::HALOSCOPE_ISA
