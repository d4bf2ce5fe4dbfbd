// Elements along a row: full vectors, then single ones.
// Included through kernels/apps.hpp only (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/simd.hpp"

namespace haloscope::HALOSCOPE_ISA {

template <int N>
struct Lanes {
  static constexpr int count = N;
};

/// f(Lanes<N>, x) for n elements of doubles: vectors of `Most` lanes, then single elements. With one lane the compiler
/// makes no vectors of its own.
template <int Most = full_lanes<double>, class F>
HALOSCOPE_INLINE void along(std::int64_t n, const F& f) {
  std::int64_t x = 0;
  if constexpr (Most > 1)
    for (; x + Most <= n; x += Most) f(Lanes<Most>{}, x);
  for (; x < n; ++x) {
    if constexpr (Most == 1) asm volatile("");
    f(Lanes<1>{}, x);
  }
}

}  // namespace haloscope::HALOSCOPE_ISA
