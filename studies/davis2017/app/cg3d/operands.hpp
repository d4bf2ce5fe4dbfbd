// Common conventions of the kernels of cg3d and the app that calls them.
#pragma once

#include <cstdint>

namespace haloscope {

/// Entries of KernelArgs::weights: the coefficients, then the split points of up to three sums
/// (ReproducibleSum::split).
enum { cg_alpha, cg_less_alpha, cg_beta, cg_split, cg_sum_parts = 3, cg_most_sums = 3 };
constexpr int cg_weights = cg_split + cg_most_sums * cg_sum_parts;

/// Maximum bytes of the planes that a kernel keeps: a part of a second-level cache.
constexpr std::int64_t cg_ring_bytes = 384 << 10;

/// Elements between rows of n cells and one more on each side, rows aligned like cell 0 of each.
constexpr std::int64_t cg_ring_pitch(std::int64_t n) { return (n + 1 + 7) / 8 * 8 + 8; }

}  // namespace haloscope
