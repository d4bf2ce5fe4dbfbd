// Kernels: one time step (or several fused ones) of a stencil on a box of cells. No MPI, no allocation, no virtual
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/box.hpp"

namespace haloscope {

/// One kernel call on one thread.
struct SweepArgs {
  const void* in = nullptr;         ///< cell (0,0,0) of the slot read
  void* out = nullptr;              ///< cell (0,0,0) of the slot written
  std::int64_t row = 0;             ///< elements between cells neighbouring in y (in and out alike)
  std::int64_t plane = 0;           ///< elements between cells neighbouring in z
  Box region;                       ///< cells written
  const double* weights = nullptr;  ///< the form's coefficients, see find_kernel; rounded to the field's type
  bool stream = false;              ///< non-temporal stores: the field does not fit the cache
  int levels = 1;                   ///< time steps fused (only by Kernel::fused)
  void* scratch = nullptr;          ///< `scratch_bytes` bytes, 64-byte aligned, private to the calling thread
};

/// A kernel for one scalar type, form and instruction set.
struct Kernel {
  void (*sweep)(const SweepArgs&) = nullptr;
  /// Fused steps: writes `region` at time t + levels; reads `region` grown by levels x radius at time t.
  void (*fused)(const SweepArgs&) = nullptr;
  std::size_t (*scratch_bytes)(const Box& region, int levels) = nullptr;
  const char* isa = "";
};

/// Instruction sets this build holds and this CPU runs, best first: "avx512", "avx2", "baseline".
std::vector<std::string> kernel_isas();

enum class Real : std::uint8_t { f32, f64 };

/// A kernel by name. A form fixes the order of a point's operations, one product and then one fma per term, each
/// rounded once: every instruction set, region, tiling, split over threads, kind of store and number of fused levels
/// gives the same bits. Where a CPU has no fma instruction (baseline on x86) libm computes it, correct but tens of
/// times slower.
///   laplace2d              5 weights: y-1, x-1, centre, x+1, y+1, summed in this order
///   laplace3d              7 weights: z-1, y-1, x-1, centre, x+1, y+1, z+1, summed in this order
///   advection3d-dense      27 weights w[(k+1)*9 + (j+1)*3 + (i+1)] of cells (x+i, y+j, z+k); sum over k, then i, then
///   j advection3d-separable  9 weights wx[3], wy[3], wz[3]; x pass, then y, then z, each from -1 to +1
/// Both advection forms are double only; `fused` exists for laplace2d only.
/// @param form "laplace2d", "laplace3d", "advection3d-dense", "advection3d-separable"
/// @param real f32 or f64
/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for an unknown form, a type the form does not have, or an ISA this CPU lacks.
Kernel find_kernel(const std::string& form, Real real, const std::string& isa = "");

}  // namespace haloscope
