// Elements along a row: full vectors, then single ones.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/simd.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// N elements along a row, of which the first `again` were there before: see cover().
template <int N>
struct Lanes {
  static constexpr int count = N;
  int again = 0;

  /// Returns v with zeros for elements that were there before.
  template <class T>
  HALOSCOPE_INLINE Vec<T, N> fresh(Vec<T, N> v) const {
    if (again == 0) return v;
    T kept[N];
    v.store(kept);
    for (int i = 0; i < again; ++i) kept[i] = 0;
    return Vec<T, N>::load(kept);
  }
  /// Stores the elements that were not there before.
  template <class T>
  HALOSCOPE_INLINE void put(Vec<T, N> value, T* to) const {
    if (again == 0)
      value.store(to);
    else
      store_lanes(to, value, again, N);
  }
};

/// Calls f(Lanes<N>, x) for n elements of doubles: vectors of `Most` lanes, then single elements. With one lane the
/// compiler does not vectorise.
template <int Most = full_lanes<double>, class F>
HALOSCOPE_INLINE void along(std::int64_t n, const F& f) {
  std::int64_t x = 0;
  if constexpr (Most > 1)
    for (; x + Most <= n; x += Most) f(Lanes<Most>{}, x);
  for (; x < n; ++x) {
#if HALOSCOPE_SIMD
    if constexpr (Most == 1) asm volatile("");
#endif
    f(Lanes<1>{}, x);
  }
}

/// The same only in vectors where n >= Most: the last one begins before the end of the one before it. f may write the
/// elements that it reads with Lanes::put() only.
template <int Most = full_lanes<double>, class F>
HALOSCOPE_INLINE void cover(std::int64_t n, const F& f) {
  if (n < Most) return along<1>(n, f);
  for (std::int64_t x = 0; x < n; x += Most) {
    const int again = x + Most > n ? static_cast<int>(x + Most - n) : 0;
    f(Lanes<Most>{again}, x - again);
  }
}

}  // namespace haloscope::HALOSCOPE_ISA
