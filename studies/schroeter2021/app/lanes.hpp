// Vector functions of the poisson2d kernels, and the waits between members of a team.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include <sched.h>

#include "haloscope/kernels/kernel.hpp"
#include "haloscope/kernels/simd.hpp"
#include "schroeter2021/app/terms.hpp"

namespace haloscope::HALOSCOPE_ISA {

HALOSCOPE_INLINE double larger(double a, double b) { return a > b ? a : b; }

template <int N>
HALOSCOPE_INLINE Vec<double, N> larger(Vec<double, N> a, Vec<double, N> b) {
  if constexpr (N == 1) return {larger(a.v, b.v)};
#if defined(__AVX512F__)
  else if constexpr (N == 8)
    return {_mm512_maskz_max_pd(0xff, a.v, b.v)};
#endif
  else
    return {a.v > b.v ? a.v : b.v};
}

template <int N>
HALOSCOPE_INLINE Vec<double, N> magnitude(Vec<double, N> a) {
  if constexpr (N == 1) {
    return {__builtin_fabs(a.v)};
  } else {
    using Bits = typename RawVector<std::int64_t, N>::type;
    return {reinterpret_cast<typename RawVector<double, N>::type>(reinterpret_cast<Bits>(a.v) & INT64_MAX)};
  }
}

/// Returns the largest lane, by way of memory: access to lanes by number would keep v there for its whole lifetime.
template <int N>
HALOSCOPE_INLINE double largest_lane(Vec<double, N> v) {
  double lanes[N], most = 0;
  v.store(lanes);
  for (double lane : lanes) most = larger(most, lane);
  return most;
}

/// Returns lanes 1 to N - 1 of v, then s.
template <int N>
HALOSCOPE_INLINE Vec<double, N> shift_in(Vec<double, N> v, double s) {
  const auto last = Vec<double, N>::splat(s).v;
#if defined(__AVX512F__)
  if constexpr (N == 8) {
    const auto joined =
        _mm512_maskz_alignr_epi64(0xff, reinterpret_cast<__m512i>(last), reinterpret_cast<__m512i>(v.v), 1);
    return {reinterpret_cast<__m512d>(joined)};
  }
#endif
  if constexpr (N == 4) return {__builtin_shufflevector(v.v, last, 1, 2, 3, 4)};
  if constexpr (N == 2) return {__builtin_shufflevector(v.v, last, 1, 2)};
}

/// The progress of this member and the waiting for others'. Counters only rise, and all members' agree between calls.
struct Relay {
  std::int64_t* counters;  ///< of member 0; null for a team of one
  int member, members;
  std::int64_t base;  ///< this member's counter, and so all members', at the start of the call

  explicit Relay(const TeamShare& share)
      : counters(share.members > 1 ? &share.progress->done : nullptr), member(share.member), members(share.members) {
    base = counters ? *counter(member) : 0;
  }

  /// Returns the same relay for a part of the call that starts when all have announced `done`.
  Relay later(std::int64_t done) const {
    Relay r = *this;
    r.base += done;
    return r;
  }

  void announce(std::int64_t done) const {
    if (counters) __atomic_store_n(counter(member), base + done, __ATOMIC_RELEASE);
  }
  /// Returns once member `other` has announced `done`.
  void await(int other, std::int64_t done) const {
    if (!counters) return;
    for (int turn = 0; __atomic_load_n(counter(other), __ATOMIC_ACQUIRE) < base + done; ++turn) {
      if (turn < 4096)
        relax();
      else
        sched_yield();  // the other may be waiting for this core
    }
  }
  /// A barrier at which every member has announced `done`.
  void meet(std::int64_t done) const {
    announce(done);
    for (int other = 0; other < members; ++other) await(other, done);
  }

 private:
  std::int64_t* counter(int of) const { return counters + of * (sizeof(TeamProgress) / sizeof(std::int64_t)); }
  HALOSCOPE_INLINE static void relax() {
#if defined(__SSE2__)
    _mm_pause();
#endif
  }
};

}  // namespace haloscope::HALOSCOPE_ISA
