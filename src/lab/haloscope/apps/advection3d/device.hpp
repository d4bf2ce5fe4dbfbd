// advection3d on devices. A form: see device/launch.hpp.
#pragma once

#include "haloscope/device/launch.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

template <class T>
struct Dense27 {
  using Real = T;
  static constexpr int dims = 3, weights = 27, ahead = 2, fused = 1, rows = 2;
  static constexpr WideReading wide{false, 4, 512, {32, 8, 16}};
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
  static constexpr int dims = 3, weights = 9, ahead = 2, fused = 1, rows = 2;
  static constexpr WideReading wide{true, 4, 512, {32, 8, 16}};
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

inline void add_advection3d(Kernels& kernels) {
  add_form<Dense27<double>>(kernels, "advection3d-dense", "f64");
  add_form<Separable27<double>>(kernels, "advection3d-separable", "f64");
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
