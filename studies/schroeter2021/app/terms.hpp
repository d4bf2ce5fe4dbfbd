// Arguments of poisson2d's kernels besides the arguments of all kernels: KernelArgs::own. Plain values.
#pragma once

#include "haloscope/core/kernel_args.hpp"

namespace haloscope {

/// Terms of a sweep of poisson2d.
struct PoissonTerms {
  /// A term row_factor[y] * column_factor[x], entry y for line y of the region; null: none.
  const double *row_factor = nullptr, *column_factor = nullptr;
  /// Receives the largest |old - new| of this member's part for each of the `levels` steps; null: not requested.
  double* change = nullptr;
};

/// Returns the terms of a call; `own` is never null.
[[gnu::always_inline]] inline const PoissonTerms& terms_of(const KernelArgs& args) {
  return *static_cast<const PoissonTerms*>(args.own);
}

}  // namespace haloscope
