// Kernels of laplace2d: five free weights.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/fused.hpp"
#include "haloscope/kernels/kernel_table.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// Five free weights: north (y-1), west (x-1), centre, east, south (y+1), summed in this order.
template <class T>
struct Laplace2d {
  using Real = T;
  static constexpr int weights = 5, rows = 4, planes = 1, fetch_bytes = 384;
  T w[weights];

  template <int N, int JY, int JZ, class Source, class Emit>
  HALOSCOPE_INLINE void apply(const Source& src, std::int64_t x, const Emit& emit) const {
    using V = Vec<T, N>;
    const auto u = src.plane(0, x);
    V north = V::load(u(-1)), centre = V::load(u(0));
#pragma GCC unroll 8
    for (int j = 0; j < JY; ++j) {
      const V south = V::load(u(j + 1));
      V sum = V::splat(w[0]) * north;
      sum = fma(V::splat(w[1]), V::load(u(j) - 1), sum);
      sum = fma(V::splat(w[2]), centre, sum);
      sum = fma(V::splat(w[3]), V::load(u(j) + 1), sum);
      emit(j, 0, fma(V::splat(w[4]), south, sum));
      north = centre, centre = south;
    }
  }
};

inline void add_laplace2d(KernelTable& table, const char* isa) {
  table.add({"laplace2d", Real::f64, sweep_and_fuse<Laplace2d<double>>(isa)});
  table.add({"laplace2d", Real::f32, sweep_and_fuse<Laplace2d<float>>(isa)});
}

}  // namespace haloscope::HALOSCOPE_ISA
