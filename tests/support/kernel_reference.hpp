// The plain scalar loops that define each form's bits, and grids of random data with guarded surroundings.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "each_point.hpp"
#include "haloscope/kernels/kernel.hpp"

namespace haloscope::test {

inline int weight_count(const std::string& form) {
  if (form == "laplace2d") return 5;
  if (form == "laplace3d") return 7;
  return form == "advection3d-dense" ? 27 : 9;
}

inline int dims(const std::string& form) { return form == "laplace2d" ? 2 : 3; }

/// Random weights of magnitude about 1/count, so that repeated steps neither grow nor vanish.
inline std::vector<double> random_weights(const std::string& form, std::mt19937_64& rng) {
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  std::vector<double> w(weight_count(form));
  const double scale = form == "advection3d-separable" ? 3.0 : static_cast<double>(w.size());
  for (auto& x : w) x = uniform(rng) / scale * (rng() % 4 == 0 ? -1 : 1);
  return w;
}

/// The value of one point of the form with that number of weights, `p` pointing to its centre: the definition that
/// every kernel must reproduce to the bit.
template <class T>
T reference_point(int weights, const T* p, std::int64_t row, std::int64_t plane, const T* w) {
  if (weights == 5) {
    T sum = w[0] * p[-row];
    sum = std::fma(w[1], p[-1], sum);
    sum = std::fma(w[2], p[0], sum);
    sum = std::fma(w[3], p[1], sum);
    return std::fma(w[4], p[row], sum);
  }
  if (weights == 7) {
    T sum = w[0] * p[-plane];
    sum = std::fma(w[1], p[-row], sum);
    sum = std::fma(w[2], p[-1], sum);
    sum = std::fma(w[3], p[0], sum);
    sum = std::fma(w[4], p[1], sum);
    sum = std::fma(w[5], p[row], sum);
    return std::fma(w[6], p[plane], sum);
  }
  if (weights == 27) {
    T sum = 0;
    for (int k = -1; k <= 1; ++k)
      for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j) {
          const T weight = w[(k + 1) * 9 + (j + 1) * 3 + (i + 1)], u = p[i + j * row + k * plane];
          sum = k == -1 && i == -1 && j == -1 ? weight * u : std::fma(weight, u, sum);
        }
    return sum;
  }
  const auto pass = [](const T* v, T low, T mid, T high) {
    return std::fma(v[2], high, std::fma(v[1], mid, v[0] * low));
  };
  T z[3];
  for (int k = 0; k < 3; ++k) {
    T y[3];
    for (int j = 0; j < 3; ++j) {
      const T* q = p + (j - 1) * row + (k - 1) * plane;
      y[j] = pass(w, q[-1], q[0], q[1]);
    }
    z[k] = pass(w + 3, y[0], y[1], y[2]);
  }
  return pass(w + 6, z[0], z[1], z[2]);
}

/// Two slots of random numbers. Every cell that no kernel may write keeps its number, so comparing whole slots shows
/// stray writes as well as wrong values.
template <class T>
struct Grid {
  Index cells;
  std::int64_t row, plane, first;
  std::vector<T> in, out;

  /// @param margin  layers around the cells; @param pad  elements added to each row; @param start  offset of the slots
  Grid(const std::string& form, const Index& cells_, int margin, int pad, int start, std::mt19937_64& rng)
      : cells(cells_) {
    const std::int64_t deep = dims(form) == 3 ? margin : 0;
    row = cells[0] + 2 * margin + pad;
    plane = row * (cells[1] + 2 * margin) + pad / 2;
    first = start + margin + margin * row + deep * plane;
    const auto size = static_cast<std::size_t>(start + plane * (cells[2] + 2 * deep));
    std::uniform_real_distribution<T> uniform(T(-1), T(1));
    in.resize(size), out.resize(size);
    for (auto& x : in) x = uniform(rng);
    for (auto& x : out) x = uniform(rng);
  }
  KernelArgs args(const Box& region, const std::vector<double>& weights, bool stream) {
    KernelArgs a;
    a.in = in.data() + first, a.out = out.data() + first;
    a.row = row, a.plane = plane, a.region = region, a.weights = weights.data(), a.stream = stream;
    return a;
  }
};

/// out := one reference step on `region`.
template <class T>
void reference_sweep(const std::string& form, const T* in, T* out, std::int64_t row, std::int64_t plane,
                     const Box& region, const std::vector<double>& weights) {
  const std::vector<T> w(weights.begin(), weights.end());
  const int count = weight_count(form);
  each_point(region, [&](const Index& p) {
    const auto at = p[0] + p[1] * row + p[2] * plane;
    out[at] = reference_point(count, in + at, row, plane, w.data());
  });
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace haloscope::test
