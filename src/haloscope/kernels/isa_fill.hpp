// Fills the table of the instruction set that the including translation unit is compiled for (see simd.hpp).
#pragma once

#include "haloscope/apps/poisson_fused.hpp"
#include "haloscope/apps/poisson_jacobi.hpp"
#include "haloscope/kernels/fused.hpp"
#include "haloscope/kernels/isa_table.hpp"
#include "haloscope/kernels/probe_loops.hpp"

namespace haloscope::HALOSCOPE_ISA {

inline const IsaTable* table(const char* isa) {
  static const IsaTable filled{
      {{"laplace2d",
        Real::f64,
        {sweep<Laplace2d<double>>, fused<Laplace2d<double>>, fused_scratch<Laplace2d<double>>, isa}},
       {"laplace2d",
        Real::f32,
        {sweep<Laplace2d<float>>, fused<Laplace2d<float>>, fused_scratch<Laplace2d<float>>, isa}},
       {"laplace3d", Real::f64, {sweep<Laplace3d<double>>, nullptr, nullptr, isa}},
       {"laplace3d", Real::f32, {sweep<Laplace3d<float>>, nullptr, nullptr, isa}},
       {"advection3d-dense", Real::f64, {sweep<Dense27<double>>, nullptr, nullptr, isa}},
       {"advection3d-separable", Real::f64, {sweep<Separable27<double>>, nullptr, nullptr, isa}}},
      {jacobi, gauss_seidel, gauss_seidel_fused, fused_sweeps_scratch, isa},
      copy<1, false>,
      copy<1, true>,
      copy<4, true>,
      fma_burst};
  return &filled;
}

}  // namespace haloscope::HALOSCOPE_ISA
