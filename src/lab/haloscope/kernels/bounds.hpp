// A box for kernels. Included for one instruction set or a device's kernels only (see simd.hpp for why).
#pragma once

#include "haloscope/box.hpp"
#include "haloscope/kernels/simd.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// The bounds of a box as plain numbers: std::array's accessors are inline functions, see simd.hpp.
struct Bounds {
  std::int64_t lo[3], hi[3];
  HALOSCOPE_INLINE explicit Bounds(const Box& box) {
    static_assert(sizeof(Box) == sizeof lo + sizeof hi);
    __builtin_memcpy(lo, &box, sizeof lo);
    __builtin_memcpy(hi, reinterpret_cast<const char*>(&box) + sizeof lo, sizeof hi);
  }
  HALOSCOPE_INLINE bool empty() const { return hi[0] <= lo[0] || hi[1] <= lo[1] || hi[2] <= lo[2]; }
};

}  // namespace haloscope::HALOSCOPE_ISA
