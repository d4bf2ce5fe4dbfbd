// poisson2d: sweeps of the five-point Poisson problem, by Jacobi and by Gauss-Seidel. No MPI, no allocation.
//
// The bits of a point are fixed by its one order of operations, each rounded on its own (no fused multiply-add):
//   function 1   new = (((W + E) + S) + N) * 0.25
//   function 2   new = (((W + E) + S) + N) * 0.25 + row_factor[y] * column_factor[x]
// with W = x-1, E = x+1, S = y+1 (the next line) and N = y-1 (the line before). Gauss-Seidel visits the cells line by
// line, x rising, and uses new values as soon as they exist. Every instruction set, region, split over threads, kind of
// store and number of fused sweeps gives the bits of the plain loops below; residuals are exact maxima.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/kernels/kernel.hpp"
#include "schroeter2021/app/terms.hpp"

namespace haloscope {

/// Arguments of a kernel of poisson2d.
struct PoissonArgs : KernelArgs, PoissonTerms {
  PoissonArgs() : PoissonArgs(KernelArgs()) {}
  explicit PoissonArgs(const KernelArgs& args) : KernelArgs(args) { own = static_cast<PoissonTerms*>(this); }
  PoissonArgs(const PoissonArgs& other) : KernelArgs(other), PoissonTerms(other) {
    own = static_cast<PoissonTerms*>(this);
  }
  PoissonArgs& operator=(const PoissonArgs&) = delete;
};

/// The definition of form "poisson2d-jacobi": the plain loop. Returns the residual, or 0 if none is requested.
double jacobi_plain(const KernelArgs& args);

/// The definition of form "poisson2d-gauss-seidel": the plain row-major loop. Returns the residual, or 0.
double gauss_seidel_plain(const KernelArgs& args);

/// The unit square with `8 interlines + 8` intervals per side (Schroeter 2021, S-A1, S-A2).
struct PoissonProblem {
  std::int64_t interlines = 0;  ///< >= 0
  int function = 1;             ///< 1: f = 0, border 0 to 1; 2: f = 2 pi^2 sin(pi x) sin(pi y), border 0

  std::int64_t intervals() const { return 8 * interlines + 8; }
  std::int64_t lines() const { return intervals() + 1; }  ///< per side, the two border lines included

  /// Returns the value at the start: the border's on the border, 0 inside. Line and column from 0 to intervals().
  double start(std::int64_t line, std::int64_t column) const;
  /// Returns h^2/4 * 2 pi^2 sin(pi y), by line, for function 2; empty for function 1.
  std::vector<double> row_factors() const;
  /// Returns sin(pi x), by column, for function 2; empty for function 1.
  std::vector<double> column_factors() const;
};

}  // namespace haloscope
