// Kernels: one time step (or several fused ones) of a stencil on a box of cells. No MPI, no allocation, no virtual call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/core/box.hpp"

namespace haloscope {

/// One kernel call on one thread.
struct SweepArgs {
  const void* in = nullptr;   ///< cell (0,0,0) of the slot read
  void* out = nullptr;        ///< cell (0,0,0) of the slot written
  std::int64_t row = 0;       ///< elements between cells neighbouring in y (in and out alike)
  std::int64_t plane = 0;     ///< elements between cells neighbouring in z
  Box region;                 ///< cells written
  const double* weights = nullptr;  ///< the form's coefficients, see the app
  bool stream = false;        ///< non-temporal stores: the field does not fit the cache
  int levels = 1;             ///< time steps fused (only kernels with `max_levels` > 1)
  void* scratch = nullptr;    ///< `scratch_bytes` bytes, 64-byte aligned, private to the calling thread
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

/// @param form "laplace2d", "laplace3d", "advection3d-dense", "advection3d-separable"
/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for an unknown form, a type the form does not have, or an ISA this CPU lacks.
Kernel find_kernel(const std::string& form, Real real, const std::string& isa = "");

}  // namespace haloscope
