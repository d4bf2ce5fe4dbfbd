// One Gauss-Seidel sweep of poisson2d. Included for one instruction set at a time (see simd.hpp for why).
//
// Each new value waits for the one west of it: three additions and a product in sequence. So a block of lines
// advances together, each line one column behind the line before: the lines' chains are independent of each other.
#pragma once

#include "haloscope/kernels/jam.hpp"
#include "schroeter2021/app/lanes.hpp"

namespace haloscope::HALOSCOPE_ISA {

/// A box of cells to sweep in place: `u` points to its first cell, the factors to its first line and column.
struct Patch {
  double* u;
  std::int64_t row, columns, lines;
  const double *row_factor, *column_factor;

  HALOSCOPE_INLINE Patch part(std::int64_t x, std::int64_t y, std::int64_t columns_, std::int64_t lines_) const {
    return {u + x + y * row,
            row,
            columns_,
            lines_,
            row_factor ? row_factor + y : nullptr,
            column_factor ? column_factor + x : nullptr};
  }
};

/// R lines of a patch, line r at column s - r in step s.
template <int R, bool Source, bool Residual>
struct SkewedLines {
  static constexpr int chains = R < 4 ? R : 4;
  double west[R];  ///< the last result of each line
  double largest[chains]{};

  HALOSCOPE_INLINE SkewedLines(const Patch& p) {
    for (int r = 0; r < R; ++r) west[r] = p.u[r * p.row - 1];
  }

  template <bool AtEnds>
  HALOSCOPE_INLINE void step(const Patch& p, std::int64_t s) {
    double east_below = 0;  // of line r + 1: south of line r
#pragma GCC unroll 8
    for (int r = R - 1; r >= 0; --r) {  // upwards, so that west[r - 1] is still the result of step s - 1
      const std::int64_t x = s - r;
      double* cell = p.u + s + r * (p.row - 1);
      if (AtEnds && (x < 0 || x >= p.columns)) continue;
      const double east = cell[1];
      const double south = AtEnds || r == R - 1 ? cell[p.row] : east_below;
      const double north = r == 0 ? cell[-p.row] : west[r - 1];
      double next = (((west[r] + east) + south) + north) * 0.25;
      if constexpr (Source) next = next + p.row_factor[r] * p.column_factor[x];
      if constexpr (Residual) largest[r % chains] = larger(largest[r % chains], __builtin_fabs(cell[0] - next));
      *cell = west[r] = next;
      east_below = east;
    }
  }
};

template <int R, bool Source, bool Residual>
[[gnu::noinline]] double skewed_block(const Patch patch) {
  SkewedLines<R, Source, Residual> lines(patch);
  const std::int64_t n = patch.columns;
  std::int64_t s = 0;
  for (; s < R - 1; ++s) lines.template step<true>(patch, s);
  for (; s < n; ++s) lines.template step<false>(patch, s);
  for (; s < n + R - 1; ++s) lines.template step<true>(patch, s);
  double most = 0;
  for (double l : lines.largest) most = larger(most, l);
  return most;
}

/// Calls f(first line, block function, its lines) for blocks of 8 lines, then of 4, 2 and 1.
template <int R, bool Source, bool Residual, class F>
HALOSCOPE_INLINE void each_block(std::int64_t y, std::int64_t lines, const F& f) {
  for (; y + R <= lines; y += R) f(y, skewed_block<R, Source, Residual>, R);
  if constexpr (R > 1) each_block<R / 2, Source, Residual>(y, lines, f);
}

/// Returns the number of blocks of each_block.
HALOSCOPE_INLINE std::int64_t blocks_of(std::int64_t lines) { return lines / 8 + __builtin_popcountll(lines % 8); }

/// Runs one sweep, members side by side: a member takes a block of lines when its left neighbour has finished it.
template <bool Source, bool Residual>
double sweep_patch(const Patch& patch, const Relay& relay) {
  const std::int64_t from = patch.columns * relay.member / relay.members;
  const std::int64_t to = patch.columns * (relay.member + 1) / relay.members;
  double residual = 0;
  std::int64_t blocks = 0;
  each_block<8, Source, Residual>(0, patch.lines, [&](std::int64_t y, double (*block)(Patch), int lines) {
    ++blocks;
    if (relay.member > 0) relay.await(relay.member - 1, blocks);
    if (to > from) residual = larger(residual, block(patch.part(from, y, to - from, lines)));
    relay.announce(blocks);
  });
  return residual;
}

inline double sweep_patch(const Patch& patch, const Relay& relay, bool residual) {
  if (patch.row_factor)
    return residual ? sweep_patch<true, true>(patch, relay) : sweep_patch<true, false>(patch, relay);
  return residual ? sweep_patch<false, true>(patch, relay) : sweep_patch<false, false>(patch, relay);
}

inline Patch patch_of(const KernelArgs& args) {
  const Bounds b(args.region);
  const bool empty = b.hi[0] <= b.lo[0] || b.hi[1] <= b.lo[1];
  const Patch all{static_cast<double*>(args.out), args.row, 0, 0, terms_of(args).row_factor,
                  terms_of(args).column_factor};
  return all.part(b.lo[0], b.lo[1], empty ? 0 : b.hi[0] - b.lo[0], empty ? 0 : b.hi[1] - b.lo[1]);
}

/// Form "poisson2d-gauss-seidel".
inline void gauss_seidel(const KernelArgs& args) {
  double* const change = terms_of(args).change;
  const double residual = sweep_patch(patch_of(args), Relay(args.team), change != nullptr);
  if (change) *change = residual;
}

}  // namespace haloscope::HALOSCOPE_ISA
