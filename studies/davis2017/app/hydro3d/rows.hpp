// Shared by the kernels of hydro3d: rows of a box, elements along them, differences of nodal values.
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "davis2017/app/hydro3d/fields.hpp"
#include "haloscope/kernels/along.hpp"
#include "haloscope/kernels/bounds.hpp"
#include "haloscope/kernels/kernel.hpp"

namespace haloscope::HALOSCOPE_ISA::hydro {

using namespace haloscope::hydro;

/// The addresses of fields, from the point (x, y, z) on.
class Fields {
 public:
  HALOSCOPE_INLINE explicit Fields(const KernelArgs& args) : operands_(args.operands) {}
  HALOSCOPE_INLINE const double* from(int field, std::int64_t x, std::int64_t y, std::int64_t z) const {
    return operands_[field].from + at(field, x, y, z);
  }
  HALOSCOPE_INLINE double* to(int field, std::int64_t x, std::int64_t y, std::int64_t z) const {
    return operands_[field].to + at(field, x, y, z);
  }
  HALOSCOPE_INLINE const std::int32_t* integers(int field, std::int64_t x, std::int64_t y, std::int64_t z) const {
    return reinterpret_cast<const std::int32_t*>(operands_[field].from) + at(field, x, y, z);
  }
  HALOSCOPE_INLINE std::int32_t* to_integers(int field, std::int64_t x, std::int64_t y, std::int64_t z) const {
    return reinterpret_cast<std::int32_t*>(operands_[field].to) + at(field, x, y, z);
  }
  /// Returns the elements between neighbours in dimension d.
  HALOSCOPE_INLINE std::int64_t stride(int field, int d) const {
    return d == 0 ? 1 : d == 1 ? operands_[field].row : operands_[field].plane;
  }

 private:
  HALOSCOPE_INLINE std::int64_t at(int field, std::int64_t x, std::int64_t y, std::int64_t z) const {
    return x + y * operands_[field].row + z * operands_[field].plane;
  }
  const Operand* operands_;
};

/// The traversal of rows in a form: `Most` elements at a time, then one by one.
template <int Most>
struct Plainly {
  static constexpr int lanes = Most;
  static constexpr bool joins_faces = false, fetches = false;
  template <class F>
  HALOSCOPE_INLINE static void along(std::int64_t n, const F& f) {
    HALOSCOPE_ISA::along<Most>(n, f);
  }
};

/// Traversal in vectors only, which prefetches the data after the present row. No earlier sweep has computed the
/// volumes swept by faces: the remap of cells computes them.
struct Ahead {
  static constexpr int lanes = full_lanes<double>;
  static constexpr bool joins_faces = true, fetches = true;
  template <class F>
  HALOSCOPE_INLINE static void along(std::int64_t n, const F& f) {
    cover<lanes>(n, f);
  }
};

/// Calls f(x, y, z, n) for each row of a box, with its first point and its length.
template <class F>
HALOSCOPE_INLINE void each_row(const Bounds& b, const F& f) {
  for (std::int64_t z = b.lo[2]; z < b.hi[2]; ++z)
    for (std::int64_t y = b.lo[1]; y < b.hi[1]; ++y) f(b.lo[0], y, z, b.hi[0] - b.lo[0]);
}
template <class F>
HALOSCOPE_INLINE void each_row(const Box& box, const F& f) {
  each_row(Bounds(box), f);
}

template <int N>
HALOSCOPE_INLINE Vec<double, N> splat(double value) {
  return Vec<double, N>::splat(value);
}
template <int N>
HALOSCOPE_INLINE Vec<double, N> load(const double* at) {
  return Vec<double, N>::load(at);
}

/// Integers as doubles, and back.
template <int N>
HALOSCOPE_INLINE Vec<double, N> load(const std::int32_t* at) {
  if constexpr (N == 1) {
    return {static_cast<double>(*at)};
  } else {
    typename RawVector<std::int32_t, N>::type v;
    __builtin_memcpy(&v, at, sizeof v);
    return {__builtin_convertvector(v, typename RawVector<double, N>::type)};
  }
}
template <int N>
HALOSCOPE_INLINE void store(Vec<double, N> value, std::int32_t* to) {
  if constexpr (N == 1) {
    *to = static_cast<std::int32_t>(value.v);
  } else {
    const auto v = __builtin_convertvector(value.v, typename RawVector<std::int32_t, N>::type);
    __builtin_memcpy(to, &v, sizeof v);
  }
}

/// The eight values around a cell of a nodal field, or around a node of a cell field: from the lowest one on.
template <int N>
struct Corners {
  Vec<double, N> v[8];  // x fastest, then y, then z

  Corners() = default;
  HALOSCOPE_INLINE Corners(const double* lowest, std::int64_t row, std::int64_t plane) {
    HALOSCOPE_UNROLLED(8)
    for (int i = 0; i < 8; ++i) v[i] = load<N>(lowest + (i & 1) + (i >> 1 & 1) * row + (i >> 2) * plane);
  }
  /// Returns the sum over the four pairs of neighbours in dimension d: upper less lower one.
  template <int D>
  HALOSCOPE_INLINE Vec<double, N> difference() const {
    constexpr int a = D == 0 ? 2 : 1, b = D == 2 ? 2 : 4, up = 1 << D;
    return ((v[up] - v[0]) + (v[up + a] - v[a])) + ((v[up + b] - v[b]) + (v[up + a + b] - v[a + b]));
  }
  HALOSCOPE_INLINE Vec<double, N> sum() const {
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
  }
};

/// Corners of the cells or nodes of a row in one field.
struct CornerRow {
  const double* lowest;
  std::int64_t row, plane;
  HALOSCOPE_INLINE CornerRow(const Fields& f, int field, std::int64_t x, std::int64_t y, std::int64_t z)
      : lowest(f.from(field, x, y, z)), row(f.stride(field, 1)), plane(f.stride(field, 2)) {}
  template <int N>
  HALOSCOPE_INLINE Corners<N> at(std::int64_t x) const {
    return Corners<N>(lowest + x, row, plane);
  }
};

/// The same of a vector's three fields.
struct VectorRow {
  CornerRow of[3];
  HALOSCOPE_INLINE VectorRow(const Fields& f, int field, std::int64_t x, std::int64_t y, std::int64_t z)
      : of{{f, field, x, y, z}, {f, field + 1, x, y, z}, {f, field + 2, x, y, z}} {}
};

/// Returns the volume that a cell gains per second: areas times the differences of a vector at its nodes.
template <int N>
HALOSCOPE_INLINE Vec<double, N> growth_of(const VectorRow& vector, const double* areas, std::int64_t x) {
  const auto gx = splat<N>(0.25 * areas[0]) * vector.of[0].at<N>(x).template difference<0>();
  const auto gy = splat<N>(0.25 * areas[1]) * vector.of[1].at<N>(x).template difference<1>();
  const auto gz = splat<N>(0.25 * areas[2]) * vector.of[2].at<N>(x).template difference<2>();
  return (gx + gy) + gz;
}

/// The volume that each face of a row has swept in its dimension d: its area times the mean displacement of its nodes.
class SweptRow {
 public:
  HALOSCOPE_INLINE SweptRow(const Fields& f, const double* weights, int d, std::int64_t x0, std::int64_t y,
                            std::int64_t z)
      : quarter_(0.25 * weights[area + d]),
        moved_(f.from(displacement + d, x0, y, z)),
        right_(f.stride(displacement + d, d == 0 ? 1 : 0)),
        above_(f.stride(displacement + d, d == 2 ? 1 : 2)) {}

  template <int N>
  HALOSCOPE_INLINE Vec<double, N> at(std::int64_t x) const {
    const double* node = moved_ + x;
    return splat<N>(quarter_) *
           ((load<N>(node) + load<N>(node + right_)) + (load<N>(node + above_) + load<N>(node + right_ + above_)));
  }

 private:
  double quarter_;
  const double* moved_;
  std::int64_t right_, above_;
};

}  // namespace haloscope::HALOSCOPE_ISA::hydro
