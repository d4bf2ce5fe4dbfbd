// Vectors that count: operations, loads and stores, and the misses of these accesses in modelled caches. Kernels that
// include this file in place of the one of src/ run on addresses alone: no memory is read or written.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tally.hpp"

#define HALOSCOPE_SIMD 1
#define HALOSCOPE_UNROLLED(times)
#define HALOSCOPE_UNROLLED_ON_DEVICE
#define HALOSCOPE_INLINE inline
#define HALOSCOPE_LAMBDA
#define HALOSCOPE_KERNEL

namespace haloscope::HALOSCOPE_ISA {

template <class T>
constexpr int full_lanes = 2;  ///< doubles in a vector of SSE2, as in the study

template <class T, int N>
struct RawVector {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T>
struct RawVector<T, 1> {
  using type = T;
};

/// N lanes of the same value, which is arbitrary: kernels do not branch on values.
template <class T, int N>
struct Vec {
  T v;

  static Vec load(const T* p) {
    counted::tally().load(p, N * sizeof(T));
    return {T(1)};
  }
  static Vec splat(T s) { return {s}; }
  void store(T* p) const { counted::tally().store(p, N * sizeof(T)); }
  T lane(int) const { return v; }
};

template <class T, int N>
Vec<T, N> operator*(Vec<T, N> a, Vec<T, N> b) {
  counted::tally().operate(N);
  return {a.v * b.v};
}
template <class T, int N>
Vec<T, N> operator+(Vec<T, N> a, Vec<T, N> b) {
  counted::tally().operate(N);
  return {a.v + b.v};
}
template <class T, int N>
Vec<T, N> operator-(Vec<T, N> a, Vec<T, N> b) {
  counted::tally().operate(N);
  return {a.v - b.v};
}
template <class T, int N>
Vec<T, N> operator/(Vec<T, N> a, Vec<T, N> b) {
  counted::tally().operate(N);
  return {a.v / b.v};
}
template <int N>
Vec<double, N> square_root(Vec<double, N> a) {
  counted::tally().operate(N);
  return {std::sqrt(a.v)};
}

/// Comparisons are instructions of the same units; a sign that is cleared is not.
template <class T, int N>
Vec<T, N> where_positive(Vec<T, N>, Vec<T, N> a, Vec<T, N>) {
  counted::tally().operate(N);
  return a;
}
template <class T, int N>
Vec<T, N> larger_of(Vec<T, N> a, Vec<T, N>) {
  counted::tally().operate(N);
  return a;
}
template <class T, int N>
Vec<T, N> smaller_of(Vec<T, N> a, Vec<T, N>) {
  counted::tally().operate(N);
  return a;
}
template <class T, int N>
Vec<T, N> magnitude(Vec<T, N> a) {
  return a;
}

template <class T, int N>
void store_lanes(T* p, Vec<T, N>, int first, int last) {
  for (int i = first; i < last; ++i) counted::tally().store(p + i, sizeof(T));
}

}  // namespace haloscope::HALOSCOPE_ISA
