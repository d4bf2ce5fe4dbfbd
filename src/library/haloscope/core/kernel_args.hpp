// The arguments of one kernel call, on the CPU and on devices. Plain values.
#pragma once

#include <cstdint>

#include "haloscope/box.hpp"

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

/// One quantity of a kernel of several: cell (0,0,0) where it is read and written, and the elements
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
  const void* own = nullptr;          ///< more arguments, of a type that the app and its kernels share
};

}  // namespace haloscope
