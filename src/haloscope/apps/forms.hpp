// The stencils, each written once: how a tile of JY rows x JZ planes is computed for N neighbouring cells in x.
// Included by isa_table.hpp only (see simd.hpp for why).
//
// A form fixes the order of operations of a point; tile shape, vector width and instruction set never change it. So
// every kernel of a form gives the bits of the plain loop with one fma per term. `src.plane(k, x)(j)` points to cell x of
// the row j rows and k planes away from the tile's first one.
#pragma once

#include "haloscope/apps/simd.hpp"

namespace haloscope::HALOSCOPE_ISA {

template <class T, int N, int JY, int JZ>
using Tile = Vec<T, N>[JZ][JY];

/// Five free weights: north (y-1), west (x-1), centre, east, south (y+1), summed in this order.
template <class T>
struct Laplace2d {
  using Real = T;
  static constexpr int weights = 5, rows = 4, planes = 1;
  T w[weights];

  template <int N, int JY, int JZ, class Source>
  HALOSCOPE_INLINE void apply(const Source& src, std::int64_t x, Tile<T, N, JY, JZ>& out) const {
    using V = Vec<T, N>;
    const auto u = src.plane(0, x);
#pragma GCC unroll 8
    for (int j = 0; j < JY; ++j) {
      V sum = V::splat(w[0]) * V::load(u(j - 1));
      sum = fma(V::splat(w[1]), V::load(u(j) - 1), sum);
      sum = fma(V::splat(w[2]), V::load(u(j)), sum);
      sum = fma(V::splat(w[3]), V::load(u(j) + 1), sum);
      out[0][j] = fma(V::splat(w[4]), V::load(u(j + 1)), sum);
    }
  }
};

/// Seven free weights: z-1, y-1, x-1, centre, x+1, y+1, z+1, summed in this order.
template <class T>
struct Laplace3d {
  using Real = T;
  static constexpr int weights = 7, rows = 1, planes = 4;
  T w[weights];

  template <int N, int JY, int JZ, class Source>
  HALOSCOPE_INLINE void apply(const Source& src, std::int64_t x, Tile<T, N, JY, JZ>& out) const {
    using V = Vec<T, N>;
    auto below = src.plane(-1, x), u = src.plane(0, x);
#pragma GCC unroll 8
    for (int k = 0; k < JZ; ++k) {
      const auto above = src.plane(k + 1, x);
#pragma GCC unroll 8
      for (int j = 0; j < JY; ++j) {
        V sum = V::splat(w[0]) * V::load(below(j));
        sum = fma(V::splat(w[1]), V::load(u(j - 1)), sum);
        sum = fma(V::splat(w[2]), V::load(u(j) - 1), sum);
        sum = fma(V::splat(w[3]), V::load(u(j)), sum);
        sum = fma(V::splat(w[4]), V::load(u(j) + 1), sum);
        sum = fma(V::splat(w[5]), V::load(u(j + 1)), sum);
        out[k][j] = fma(V::splat(w[6]), V::load(above(j)), sum);
      }
      below = u, u = above;
    }
  }
};

/// 27 free weights w[(k+1)*9 + (j+1)*3 + (i+1)] for the cell (x+i, y+j, z+k), summed with k slowest, then i, then j.
/// Each loaded row serves all outputs that need it before the next is loaded, or the tile would not fit the registers;
/// that is why j, not i, is the fastest.
template <class T>
struct Dense27 {
  using Real = T;
  static constexpr int weights = 27, rows = 2, planes = 4;
  T w[weights];

  template <int N, int JY, int JZ, class Source>
  HALOSCOPE_INLINE void apply(const Source& src, std::int64_t x, Tile<T, N, JY, JZ>& out) const {
    using V = Vec<T, N>;
    const T* weights_here = opaque(w);  // read where used: 27 vectors of them would push the tile out of registers
#pragma GCC unroll 8
    for (int plane = -1; plane <= JZ; ++plane) {
      const auto rows_here = src.plane(plane, x);
#pragma GCC unroll 3
      for (int i = -1; i <= 1; ++i) {
        V u[JY + 2];
#pragma GCC unroll 8
        for (int row = 0; row < JY + 2; ++row) u[row] = V::load(rows_here(row - 1) + i);
#pragma GCC unroll 8
        for (int z = 0; z < JZ; ++z) {
          const int k = plane - z;
          if (k < -1 || k > 1) continue;
#pragma GCC unroll 3
          for (int j = 0; j < 3; ++j) {
            const V weight = V::splat(weights_here[(k + 1) * 9 + j * 3 + (i + 1)]);
            const bool first = k == -1 && i == -1 && j == 0;
#pragma GCC unroll 8
            for (int y = 0; y < JY; ++y) out[z][y] = first ? weight * u[y + j] : fma(weight, u[y + j], out[z][y]);
          }
        }
      }
    }
  }
};

/// The product of three 1D stencils, weights wx[3], wy[3], wz[3]: x pass, then y, then z, each summed upwards.
template <class T>
struct Separable27 {
  using Real = T;
  static constexpr int weights = 9, rows = 2, planes = 4;
  T w[weights];

  template <class V>
  HALOSCOPE_INLINE static V pass(const T* w, V low, V mid, V high) {
    return fma(V::splat(w[2]), high, fma(V::splat(w[1]), mid, V::splat(w[0]) * low));
  }

  template <int N, int JY, int JZ, class Source>
  HALOSCOPE_INLINE void apply(const Source& src, std::int64_t x, Tile<T, N, JY, JZ>& out) const {
    using V = Vec<T, N>;
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
        if (plane + 1 < JZ) out[plane + 1][y] = V::splat(w[6]) * u_xy;
        if (plane >= 0 && plane < JZ) out[plane][y] = fma(V::splat(w[7]), u_xy, out[plane][y]);
        if (plane >= 1) out[plane - 1][y] = fma(V::splat(w[8]), u_xy, out[plane - 1][y]);
      }
    }
  }
};

}  // namespace haloscope::HALOSCOPE_ISA
