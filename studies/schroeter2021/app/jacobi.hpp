// Jacobi for poisson2d: a form of the one sweep (jam.hpp).
// Included for one instruction set at a time (see simd.hpp for why).
#pragma once

#include "haloscope/kernels/jam.hpp"
#include "haloscope/kernels/kernel.hpp"
#include "schroeter2021/app/lanes.hpp"
#include "schroeter2021/app/terms.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// (((W + E) + S) + N) * 0.25, with the right side of function 2 if `Source`. With `Residual` each tile also gathers
/// the largest |old - new|; cells computed twice at row ends count twice, which changes no maximum.
template <bool Source, bool Residual>
struct PoissonForm {
  using Real = double;
  static constexpr int rows = 4, planes = 1, fetch_bytes = 384;
  static constexpr int full = full_lanes<double>;
  const double *row_factor, *column_factor;
  double* residual;
  mutable Vec<double, full> largest{};
  mutable double largest_narrow = 0;  ///< of boxes narrower than a vector

  HALOSCOPE_INLINE PoissonForm moved(std::int64_t x, std::int64_t y) const {
    if constexpr (!Source) return *this;
    return {row_factor + y, column_factor + x, residual};
  }

  template <int N, int JY, int JZ, class Source_, class Emit>
  HALOSCOPE_INLINE void apply(const Source_& src, std::int64_t x, const Emit& emit) const {
    using V = Vec<double, N>;
    const auto u = src.plane(0, x);
    V north = V::load(u(-1)), centre = V::load(u(0));
#pragma GCC unroll 8
    for (int j = 0; j < JY; ++j) {
      const V south = V::load(u(j + 1));
      V next = (((V::load(u(j) - 1) + V::load(u(j) + 1)) + south) + north) * V::splat(0.25);
      if constexpr (Source) next = next + V::splat(row_factor[j]) * V::load(column_factor + x);
      if constexpr (Residual) gather(magnitude(centre - next));
      emit(j, 0, next);
      north = centre, centre = south;
    }
  }

  template <int N>
  HALOSCOPE_INLINE void gather(Vec<double, N> change) const {
    if constexpr (N == full) {
      largest = larger(largest, change);
    } else {
      for (int i = 0; i < N; ++i) largest_narrow = larger(largest_narrow, change.lane(i));
    }
  }
  HALOSCOPE_INLINE void finish() const {
    if constexpr (!Residual) return;
    *residual = larger(larger(*residual, largest_narrow), largest_lane(largest));
  }
};

template <bool Source, bool Residual>
void jacobi_form(const KernelArgs& args) {
  double residual = 0;
  PoissonForm<Source, Residual> form{terms_of(args).row_factor, terms_of(args).column_factor, &residual};
  if constexpr (Source) {
    const Bounds b(args.region);
    form = form.moved(b.lo[0], b.lo[1]);
  }
  sweep_form(form, args);
  if constexpr (Residual) *terms_of(args).change = residual;
}

/// Form "poisson2d-jacobi".
inline void jacobi(const KernelArgs& args) {
  const PoissonTerms& terms = terms_of(args);
  if (terms.row_factor) return terms.change ? jacobi_form<true, true>(args) : jacobi_form<true, false>(args);
  return terms.change ? jacobi_form<false, true>(args) : jacobi_form<false, false>(args);
}

}  // namespace haloscope::HALOSCOPE_ISA
