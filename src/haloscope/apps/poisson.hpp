// poisson2d: sweeps of the five-point Poisson problem, by Jacobi and by Gauss-Seidel. No MPI, no allocation.
//
// The bits of a point are fixed by its one order of operations, each rounded on its own (no fused multiply-add):
//   function 1   new = (((W + E) + S) + N) * 0.25
//   function 2   new = (((W + E) + S) + N) * 0.25 + row_factor[y] * column_factor[x]
// with W = x-1, E = x+1, S = y+1 (the next line) and N = y-1 (the line before). Gauss-Seidel visits the cells line by
// line, x rising, and uses new values as soon as they exist. Every instruction set, region, split over threads, kind of
// store and number of fused sweeps gives the bits of the plain loops below; residua are exact maxima.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "haloscope/box.hpp"

namespace haloscope {

/// One sweep on one thread.
struct PoissonArgs {
  const double* in = nullptr;             ///< cell (0,0) of the slot read; Gauss-Seidel works in `out` alone
  double* out = nullptr;                  ///< cell (0,0) of the slot written
  std::int64_t row = 0;                   ///< elements between cells neighbouring in y (in and out alike)
  Box region;                             ///< cells written, z from 0 to 1; their neighbours are read
  const double* row_factor = nullptr;     ///< function 2: entry y for line y of the region; function 1: null
  const double* column_factor = nullptr;  ///< function 2: entry x for column x of the region; function 1: null
  bool stream = false;                    ///< Jacobi: non-temporal stores, the slots do not fit the cache
  bool residuum = false;                  ///< also find the largest |old - new|
};

/// Lines (or blocks of lines) that one member of a team has finished, read by the others. Zero at first; only kernels
/// change it, and a team uses the same ones for all its calls.
struct alignas(128) PoissonProgress {
  std::int64_t done = 0;
};

/// A member's part of a Gauss-Seidel sweep shared by a team. All members make the same calls, with the same arguments
/// but for `member`, and meet at a barrier between calls.
struct PoissonShare {
  int member = 0;
  int members = 1;
  PoissonProgress* progress = nullptr;  ///< one per member; may be null for a team of one
};

/// The sweeps of one instruction set. A residuum is 0 where it was not asked for or the part is empty; that of a team
/// is the largest of its members'.
struct PoissonKernel {
  /// Jacobi: out := new(in) on the region. Returns the residuum.
  double (*jacobi)(const PoissonArgs&) = nullptr;
  /// Gauss-Seidel: one sweep of the region in place; members take columns from left to right. Returns the residuum of
  /// this member's part.
  double (*gauss_seidel)(const PoissonArgs&, const PoissonShare&) = nullptr;
  /// Gauss-Seidel: `sweeps` (>= 0) sweeps of the region in place between fixed neighbours, many in flight; members take
  /// groups of sweeps. `residua`: null, or `sweeps` numbers, private to the member, which get the residuum of its part
  /// of each sweep (args.residuum is not looked at). `scratch`: `fused_scratch_bytes`, 64-byte aligned, private.
  void (*gauss_seidel_fused)(const PoissonArgs&, const PoissonShare&, int sweeps, double* residua,
                             void* scratch) = nullptr;
  std::size_t (*fused_scratch_bytes)(const Box& region) = nullptr;
  const char* isa = "";
};

/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for an instruction set that this build or this CPU lacks.
PoissonKernel find_poisson_kernel(const std::string& isa = "");

/// The definition of PoissonKernel::jacobi: the plain loop. Returns the residuum, or 0 if not asked for.
double jacobi_plain(const PoissonArgs& args);

/// The definition of PoissonKernel::gauss_seidel: the plain row-major loop. Returns the residuum, or 0.
double gauss_seidel_plain(const PoissonArgs& args);

/// The unit square with `8 interlines + 8` intervals per side (Schroeter 2021, S-A1, S-A2).
struct PoissonProblem {
  std::int64_t interlines = 0;  ///< >= 0
  int function = 1;             ///< 1: f = 0, border 0 to 1; 2: f = 2 pi^2 sin(pi x) sin(pi y), border 0

  std::int64_t intervals() const { return 8 * interlines + 8; }
  std::int64_t lines() const { return intervals() + 1; }  ///< per side, the two border lines included

  /// Value at the start: the border's on the border, 0 inside. Line and column from 0 to intervals().
  double start(std::int64_t line, std::int64_t column) const;
  /// Function 2: h^2/4 * 2 pi^2 sin(pi y), by line. Function 1: empty.
  std::vector<double> row_factors() const;
  /// Function 2: sin(pi x), by column. Function 1: empty.
  std::vector<double> column_factors() const;
};

}  // namespace haloscope
