// laplace3d on devices. A form: see device/launch.hpp.
#pragma once

#include "haloscope/device/launch.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

template <class T>
struct Laplace3d {
  using Real = T;
  static constexpr int dims = 3, weights = 7, ahead = 16 / sizeof(T), fused = 4, rows = 2;
  static constexpr WideReading wide =
      sizeof(T) == 4 ? WideReading{true, 0, 512, {32, 4, 8}} : WideReading{false, 0, 768, {32, 4, 8}};
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

inline void add_laplace3d(Kernels& kernels) {
  add_form<Laplace3d<float>>(kernels, "laplace3d", "f32");
  add_form<Laplace3d<double>>(kernels, "laplace3d", "f64");
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
