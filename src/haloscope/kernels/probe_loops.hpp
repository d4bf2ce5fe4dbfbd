// Loops that measure what a core can do at best: copies and multiply-adds. Included through kernels/apps.hpp only
// (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/simd.hpp"

namespace haloscope::HALOSCOPE_ISA {

using Line = Vec<double, full_lanes<double>>;

/// `streams` parts of a 128 KiB block advance together: more pages in flight, more bandwidth.
template <int Streams, bool Stream>
void copy(void* out, const void* in, std::size_t bytes) {
  constexpr std::size_t step = full_lanes<double>, part = 4096, block = part * Streams;
  auto* to = static_cast<double*>(out);
  const auto* from = static_cast<const double*>(in);
  const std::size_t n = bytes / sizeof(double);
  const auto move = [&](std::size_t x) HALOSCOPE_LAMBDA {
    const Line v = Line::load(from + x);
    if constexpr (Stream)
      store_stream(to + x, v);
    else
      v.store(to + x);
    asm volatile("");  // or the compiler turns the loop into memcpy, which streams on its own account
  };
  std::size_t x = 0;
  if constexpr (Streams > 1) {
    for (; x + block <= n; x += block) {
      for (std::size_t i = 0; i < part; i += step) {
#pragma GCC unroll 8
        for (int s = 0; s < Streams; ++s) move(x + s * part + i);
      }
    }
  }
  for (; x < n; x += step) move(x);
  if constexpr (Stream) stream_fence();
}

/// Sixteen independent chains hide the latency of any current core's multiply-add.
inline double fma_burst(std::int64_t count) {
  constexpr int chains = 16;
  Line sum[chains];
  for (int c = 0; c < chains; ++c) sum[c] = Line::splat(c);
  const Line factor = Line::splat(0.5), term = Line::splat(1.0);
  const std::int64_t turns = (count + chains - 1) / chains;
  for (std::int64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 16
    for (int c = 0; c < chains; ++c) sum[c] = fma(sum[c], factor, term);
  }
  double check = 0;
  for (int c = 0; c < chains; ++c) check += sum[c].lane(0);
  volatile double keep = check;
  (void)keep;
  return static_cast<double>(turns) * chains * full_lanes<double>;
}

}  // namespace haloscope::HALOSCOPE_ISA
