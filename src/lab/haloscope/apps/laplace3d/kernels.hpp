// Kernels of laplace3d: seven free weights.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/fused.hpp"
#include "haloscope/kernels/kernel_table.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// Seven free weights: z-1, y-1, x-1, centre, x+1, y+1, z+1, summed in this order.
template <class T>
struct Laplace3d {
  using Real = T;
  static constexpr int weights = 7, rows = 1, planes = 4, fetch_bytes = 384;
  T w[weights];

  template <int N, int JY, int JZ, class Source, class Emit>
  HALOSCOPE_INLINE void apply(const Source& src, std::int64_t x, const Emit& emit) const {
    using V = Vec<T, N>;
    static_assert(JY == 1);
    decltype(src.plane(0, x)) u[JZ + 2];
#pragma GCC unroll 8
    for (int k = 0; k < JZ + 2; ++k) u[k] = src.plane(k - 1, x);  // all fetches ahead go out before the first load
    V below = V::load(u[0](0)), centre = V::load(u[1](0));
#pragma GCC unroll 8
    for (int k = 0; k < JZ; ++k) {
      const auto& here = u[k + 1];
      const V above = V::load(u[k + 2](0));
      V sum = V::splat(w[0]) * below;
      sum = fma(V::splat(w[1]), V::load(here(-1)), sum);
      sum = fma(V::splat(w[2]), V::load(here(0) - 1), sum);
      sum = fma(V::splat(w[3]), centre, sum);
      sum = fma(V::splat(w[4]), V::load(here(0) + 1), sum);
      sum = fma(V::splat(w[5]), V::load(here(1)), sum);
      emit(0, k, fma(V::splat(w[6]), above, sum));
      below = centre, centre = above;
    }
  }
};

inline void add_laplace3d(KernelTable& table, const char* isa) {
  table.add({"laplace3d", Real::f64, {sweep<Laplace3d<double>>, nullptr, nullptr, isa}});
  table.add({"laplace3d", Real::f32, {sweep<Laplace3d<float>>, nullptr, nullptr, isa}});
}

}  // namespace haloscope::HALOSCOPE_ISA
