// Loops that measure the best rates of a core: copies, passes over arrays, multiply-adds.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/isa_table.hpp"
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
    asm volatile("");  // or the compiler turns the loop into memcpy, which may stream
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

/// Calls `each(i)` for every vector of n doubles, four at a time; n is a multiple of `pass_doubles`.
template <class F>
HALOSCOPE_INLINE void for_each_vector(std::size_t n, F each) {
  constexpr std::size_t step = full_lanes<double>;
  for (std::size_t i = 0; i < n; i += 4 * step) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) each(i + k * step, k);
  }
}

inline double pass_scale(double* a, const double* b, const double*, double q, std::size_t n) {
  for_each_vector(
      n, [&](std::size_t i, std::size_t) HALOSCOPE_LAMBDA { (Line::splat(q) * Line::load(b + i)).store(a + i); });
  return 0;
}
inline double pass_add(double* a, const double* b, const double* c, double, std::size_t n) {
  for_each_vector(
      n, [&](std::size_t i, std::size_t) HALOSCOPE_LAMBDA { (Line::load(b + i) + Line::load(c + i)).store(a + i); });
  return 0;
}
inline double pass_triad(double* a, const double* b, const double* c, double q, std::size_t n) {
  for_each_vector(n, [&](std::size_t i, std::size_t)
                         HALOSCOPE_LAMBDA { (Line::load(b + i) + Line::splat(q) * Line::load(c + i)).store(a + i); });
  return 0;
}
/// Four sums hide the latency of additions; the caller gets the total, so that no load can be left out.
inline double pass_read(double* a, const double*, const double*, double, std::size_t n) {
  Line sum[4] = {Line::splat(0), Line::splat(0), Line::splat(0), Line::splat(0)};
  for_each_vector(n, [&](std::size_t i, std::size_t k) HALOSCOPE_LAMBDA { sum[k] = sum[k] + Line::load(a + i); });
  const Line all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double total = 0;
  for (int lane = 0; lane < full_lanes<double>; ++lane) total += all.lane(lane);
  return total;
}
inline double pass_write(double* a, const double*, const double*, double q, std::size_t n) {
  for_each_vector(n, [&](std::size_t i, std::size_t) HALOSCOPE_LAMBDA { Line::splat(q).store(a + i); });
  return 0;
}
inline double pass_update(double* a, const double*, const double*, double q, std::size_t n) {
  for_each_vector(
      n, [&](std::size_t i, std::size_t) HALOSCOPE_LAMBDA { (Line::load(a + i) + Line::splat(q)).store(a + i); });
  return 0;
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

/// Fills the table of machine probes.
inline IsaTable fill_table(const char* isa) {
  IsaTable table;
  table.isa = isa;
  table.copy_plain = copy<1, false>;
  table.copy_stream = copy<1, true>;
  table.copy_stream4 = copy<4, true>;
  const MemoryPass passes[memory_passes] = {pass_scale, pass_add, pass_triad, pass_read, pass_write, pass_update};
  for (int p = 0; p < memory_passes; ++p) table.pass[p] = passes[p];
  table.fma_burst = fma_burst;
  return table;
}

inline const IsaTable* table(const char* isa) {
  static const IsaTable filled = fill_table(isa);
  return &filled;
}

}  // namespace haloscope::HALOSCOPE_ISA
