// Kernels of advection3d: 27 free weights, and the product of three 1D stencils.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/fused.hpp"
#include "haloscope/kernels/kernel_table.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// 27 free weights w[(k+1)*9 + (j+1)*3 + (i+1)] for the cell (x+i, y+j, z+k), summed with k slowest, then i, then j.
/// Each loaded row serves all sums that need it before the next is loaded: otherwise the tile would not fit the
/// registers. Hence j, not i, is the fastest.
template <class T>
struct Dense27 {
  using Real = T;
  static constexpr int weights = 27, rows = many_registers ? 4 : 2, planes = rows, fetch_bytes = 192;
  T w[weights];

  template <int N, int JY, int JZ, class Source, class Emit>
  HALOSCOPE_INLINE void apply(const Source& src, std::int64_t x, const Emit& emit) const {
    using V = Vec<T, N>;
    V sum[JZ][JY];
    const T* weight = opaque(w);  // read where used: 27 vectors of them would push the sums out of the registers
#pragma GCC unroll 8
    for (int plane = -1; plane <= JZ; ++plane) {
      const auto rows_here = src.plane(plane, x);
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        V u[JY + 2];
#pragma GCC unroll 8
        for (int row = 0; row < JY + 2; ++row) u[row] = V::load(rows_here(row - 1) + i - 1);
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) {
#pragma GCC unroll 8
          for (int z = 0; z < JZ; ++z) {
            const int k = plane - z + 1;
            if (k < 0 || k > 2) continue;
            const V factor = V::splat(weight[k * 9 + j * 3 + i]);
#pragma GCC unroll 8
            for (int y = 0; y < JY; ++y)
              sum[z][y] = k + i + j == 0 ? factor * u[y + j] : fma(factor, u[y + j], sum[z][y]);
          }
        }
      }
#pragma GCC unroll 8
      for (int y = 0; y < JY; ++y) {
        if (plane > 0) emit(y, plane - 1, sum[plane - 1][y]);
      }
    }
  }
};

/// The product of three 1D stencils, weights wx[3], wy[3], wz[3]: x pass, then y, then z, each summed upwards.
template <class T>
struct Separable27 {
  using Real = T;
  static constexpr int weights = 9, rows = 2, planes = 4, fetch_bytes = 320;
  T w[weights];

  template <class V>
  HALOSCOPE_INLINE static V pass(const T* w, V low, V mid, V high) {
    return fma(V::splat(w[2]), high, fma(V::splat(w[1]), mid, V::splat(w[0]) * low));
  }

  template <int N, int JY, int JZ, class Source, class Emit>
  HALOSCOPE_INLINE void apply(const Source& src, std::int64_t x, const Emit& emit) const {
    using V = Vec<T, N>;
    V sum[JZ][JY];
#pragma GCC unroll 8
    for (int plane = -1; plane <= JZ; ++plane) {
      const auto rows_here = src.plane(plane, x);
      V u[JY + 2];  // rows of this plane after the x pass
#pragma GCC unroll 8
      for (int row = 0; row < JY + 2; ++row) {
        const T* p = rows_here(row - 1);
        u[row] = pass(w, V::load(p - 1), V::load(p), V::load(p + 1));
      }
#pragma GCC unroll 8
      for (int y = 0; y < JY; ++y) {
        const V u_xy = pass(w + 3, u[y], u[y + 1], u[y + 2]);
        if (plane + 1 < JZ) sum[plane + 1][y] = V::splat(w[6]) * u_xy;
        if (plane >= 0 && plane < JZ) sum[plane][y] = fma(V::splat(w[7]), u_xy, sum[plane][y]);
        if (plane >= 1) emit(y, plane - 1, fma(V::splat(w[8]), u_xy, sum[plane - 1][y]));
      }
    }
  }
};

inline void add_advection3d(KernelTable& table, const char* isa) {
  table.add({"advection3d-dense", Real::f64, {sweep<Dense27<double>>, nullptr, nullptr, isa}});
  table.add({"advection3d-separable", Real::f64, {sweep<Separable27<double>>, nullptr, nullptr, isa}});
}

}  // namespace haloscope::HALOSCOPE_ISA
