// Kernels: one time step (or several fused ones) of a stencil on a box of cells. No MPI, no allocation, no virtual
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/box.hpp"
#include "haloscope/real.hpp"

namespace haloscope {

/// Lines (or blocks of lines) that one member of a team has finished, read by the others. Zero at first; only kernels
/// change it, and a team uses the same ones for all its calls.
struct alignas(128) TeamProgress {
  std::int64_t done = 0;
};

/// A member's part of a sweep in place that a team shares. All members make the same calls, with the same arguments but
/// for `member`, and meet at a barrier between calls.
struct TeamShare {
  int member = 0;
  int members = 1;
  TeamProgress* progress = nullptr;  ///< one per member; may be null for a team of one
};

/// Where a kernel of several quantities finds one of them: cell (0,0,0) where it is read and written, and the elements
/// between cells neighbouring in y and z.
struct Operand {
  const double* from = nullptr;
  double* to = nullptr;
  std::int64_t row = 0, plane = 0;
};

/// One kernel call on one thread.
struct KernelArgs {
  const void* in = nullptr;           ///< cell (0,0,0) of the slot read
  void* out = nullptr;                ///< cell (0,0,0) of the slot written; sweeps in place work in it alone
  std::int64_t row = 0;               ///< elements between cells neighbouring in y (in and out alike)
  std::int64_t plane = 0;             ///< elements between cells neighbouring in z
  Box region;                         ///< cells written
  Box points;                         ///< of kernels that write nodes or faces: these
  const double* weights = nullptr;    ///< the form's coefficients, see find_kernel; rounded to the field's type
  bool stream = false;                ///< non-temporal stores: the field does not fit the cache
  int levels = 1;                     ///< time steps fused (only by Kernel::fused)
  void* scratch = nullptr;            ///< `scratch_bytes` bytes, 64-byte aligned, private to the calling thread
  TeamShare team = {};                ///< sweeps in place
  int number = 0;                     ///< of the kernel, where several share an entry
  const Operand* operands = nullptr;  ///< of kernels of several quantities, in an order of their own
  double* reduced = nullptr;          ///< of kernels that gather numbers: added to
  /// poisson2d: a term row_factor[y] * column_factor[x], entry y for line y of the region; null: none.
  const double *row_factor = nullptr, *column_factor = nullptr;
  /// poisson2d: receives the largest |old - new| of this member's part for each of the `levels` steps; null: unwanted.
  double* change = nullptr;
};

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
///   poisson2d-jacobi, poisson2d-gauss-seidel    see apps/poisson2d/problem.hpp; no fma, each operation rounded
/// The advection and poisson2d forms are double only; `fused` exists for laplace2d and poisson2d-gauss-seidel.
/// @param real f64 or f32
/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for an unknown form, a type the form does not have, or an ISA this CPU lacks.
Kernel find_kernel(const std::string& form, Real real, const std::string& isa = "");

}  // namespace haloscope
