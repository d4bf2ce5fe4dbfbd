// The stencils, layer by layer of the last dimension, with the operations of a point in the order that defines its bits
// (apps/kernel.hpp): a layer's part of a sum does not depend on who adds the other layers'.
#pragma once

#include "haloscope/device/team.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

/// Every form: `sum` plus what layer K (-1, 0, +1) adds to a point; K = -1 begins the sum. at(i, j) is the cell i
/// further in x (and, in three dimensions, j further in y) of that layer, for the (i, j) that reads() has. `ahead`:
/// layers of them that a thread can hold in registers and leave room for a thousand threads beside it. `fused`: time
/// steps that one launch fuses at most, 1 where a stencil reads too much for that.
template <class T>
struct Laplace2d {
  using Real = T;
  static constexpr int dims = 2, weights = 5, ahead = 32 / sizeof(T), fused = 8;
  HALOSCOPE_FUNCTION static constexpr bool reads(int, int j) { return j == 0; }
  T w[weights];
  template <int K, class At>
  HALOSCOPE_FUNCTION T layer(const At& at, T sum) const {
    if constexpr (K == -1) return w[0] * at(0, 0);
    if constexpr (K == 1) return fused_multiply_add(w[4], at(0, 0), sum);
    sum = fused_multiply_add(w[1], at(-1, 0), sum);
    sum = fused_multiply_add(w[2], at(0, 0), sum);
    return fused_multiply_add(w[3], at(1, 0), sum);
  }
};

template <class T>
struct Laplace3d {
  using Real = T;
  static constexpr int dims = 3, weights = 7, ahead = 16 / sizeof(T), fused = 4;
  HALOSCOPE_FUNCTION static constexpr bool reads(int i, int j) { return i == 0 || j == 0; }
  T w[weights];
  template <int K, class At>
  HALOSCOPE_FUNCTION T layer(const At& at, T sum) const {
    if constexpr (K == -1) return w[0] * at(0, 0);
    if constexpr (K == 1) return fused_multiply_add(w[6], at(0, 0), sum);
    sum = fused_multiply_add(w[1], at(0, -1), sum);
    sum = fused_multiply_add(w[2], at(-1, 0), sum);
    sum = fused_multiply_add(w[3], at(0, 0), sum);
    sum = fused_multiply_add(w[4], at(1, 0), sum);
    return fused_multiply_add(w[5], at(0, 1), sum);
  }
};

template <class T>
struct Dense27 {
  using Real = T;
  static constexpr int dims = 3, weights = 27, ahead = 2, fused = 1;
  HALOSCOPE_FUNCTION static constexpr bool reads(int, int) { return true; }
  T w[weights];
  template <int K, class At>
  HALOSCOPE_FUNCTION T layer(const At& at, T sum) const {
    HALOSCOPE_UNROLL()
    for (int i = -1; i <= 1; ++i) {
      HALOSCOPE_UNROLL()
      for (int j = -1; j <= 1; ++j) {
        const T weight = w[(K + 1) * 9 + (j + 1) * 3 + (i + 1)];
        sum = K == -1 && i == -1 && j == -1 ? weight * at(i, j) : fused_multiply_add(weight, at(i, j), sum);
      }
    }
    return sum;
  }
};

template <class T>
struct Separable27 {
  using Real = T;
  static constexpr int dims = 3, weights = 9, ahead = 2, fused = 1;
  HALOSCOPE_FUNCTION static constexpr bool reads(int, int) { return true; }
  T w[weights];
  HALOSCOPE_FUNCTION static T pass(const T* v, T low, T mid, T high) {
    return fused_multiply_add(v[2], high, fused_multiply_add(v[1], mid, v[0] * low));
  }
  template <int K, class At>
  HALOSCOPE_FUNCTION T layer(const At& at, T sum) const {
    T y[3];
    HALOSCOPE_UNROLL()
    for (int j = 0; j < 3; ++j) y[j] = pass(w, at(-1, j - 1), at(0, j - 1), at(1, j - 1));
    const T xy = pass(w + 3, y[0], y[1], y[2]);
    return K == -1 ? w[6] * xy : fused_multiply_add(w[7 + K], xy, sum);
  }
};

}  // namespace haloscope::device::HALOSCOPE_BACKEND
