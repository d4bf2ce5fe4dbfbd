// Kernels: one time step (or several fused ones) of a stencil on a box of cells. No MPI, no allocation, no virtual
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/core/kernel_args.hpp"
#include "haloscope/extend/real.hpp"

namespace haloscope {

/// A kernel for one scalar type, form and instruction set.
struct Kernel {
  void (*sweep)(const KernelArgs&) = nullptr;
  /// Fused steps: writes `region` at time t + levels; reads `region` grown by levels x radius at time t.
  void (*fused)(const KernelArgs&) = nullptr;
  std::size_t (*scratch_bytes)(const Box& region, int levels) = nullptr;
  const char* isa = "";
};

/// Instruction sets this build holds and this CPU runs, best first: "avx512", "avx2", "baseline".
std::vector<std::string> kernel_isas();

/// A kernel by name. A form fixes the order of a point's operations, one product and then one fma per term, each
/// rounded once: every instruction set, region, tiling, split over threads, kind of store and number of fused levels
/// gives the same bits. Where a CPU has no fma instruction (baseline on x86) libm computes it, correct but tens of
/// times slower.
///   laplace2d              5 weights: y-1, x-1, centre, x+1, y+1, summed in this order
///   laplace3d              7 weights: z-1, y-1, x-1, centre, x+1, y+1, z+1, summed in this order
///   advection3d-dense      27 weights w[(k+1)*9 + (j+1)*3 + (i+1)] of cells (x+i, y+j, z+k); k slowest, then i, then j
///   advection3d-separable  9 weights wx[3], wy[3], wz[3]; x pass, then y, then z, each from -1 to +1
/// The advection forms are double only; `fused` exists for laplace2d. Studies may add forms, with separate rules.
/// @param real f64 or f32
/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for an unknown form, a type the form does not have, or an ISA this CPU lacks.
Kernel find_kernel(const std::string& form, Real real, const std::string& isa = "");

}  // namespace haloscope
