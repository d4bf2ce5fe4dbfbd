// laplace2d on devices. A form: see device/launch.hpp.
#pragma once

#include "haloscope/device/launch.hpp"

namespace haloscope::device::HALOSCOPE_BACKEND {

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

inline void add_laplace2d(Kernels& kernels) {
  add_form<Laplace2d<float>>(kernels, "laplace2d", "f32");
  add_form<Laplace2d<double>>(kernels, "laplace2d", "f64");
}

}  // namespace haloscope::device::HALOSCOPE_BACKEND
