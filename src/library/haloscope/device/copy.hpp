// Launches of the copy kernel, and the functions that cut copies for it. Plain values, no device code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "haloscope/pack/block_copy.hpp"

namespace haloscope::device {

/// A divisor that a multiplication replaces: n / d is the high 32 bits of 2 n multiplier, shifted right (Granlund and
/// Montgomery 1994), for n from 0 to 2^31 - 1.
struct Divisor {
  std::uint32_t multiplier;
  std::int32_t shift;
};
/// @param d  1 to 2^31 - 1
Divisor divide_by(std::int32_t d);

/// A list of block copies (or additions, or clearings) that do not depend on each other, cut into pieces of about equal
/// work: one launch.
struct CopyLaunch {
  /// The copy of one block of threads: `units` units in row order, from unit x of row y of the first plane on.
  struct Piece {
    const std::byte* from;  ///< the first plane
    std::byte* to;
    std::int64_t from_row, from_plane, to_row, to_plane;  ///< strides in bytes
    std::int32_t units_per_row, rows;                     ///< rows of one plane
    std::int32_t x, y;
    Divisor by_row, by_plane;        ///< by units_per_row, and by rows
    std::int32_t unit_bytes, units;  ///< 1, 4, 8 or 16
    std::int32_t negated = 0;        ///< 1: units are reals whose sign changes
    Store store = Store::replace;    ///< add: each unit is a number, of `summand`
    Summand summand = Summand::none;
    bool aligned = true;  ///< numbers that are added begin at multiples of their bytes, at both ends
  };
  const Piece* pieces = nullptr;  ///< device memory
  int count = 0;
  bool stores = false;  ///< some pieces add or clear
};
/// Max units that one block of threads copies.
inline constexpr int units_per_piece = 1024;

/// The pieces of `copies`, to be copied to device memory. @throws nothing; empty copies are skipped.
std::vector<CopyLaunch::Piece> cut_copies(const std::vector<BlockCopy>& copies);
/// The same, appended to `pieces`.
void cut_copies(const std::vector<BlockCopy>& copies, std::vector<CopyLaunch::Piece>& pieces);
/// Cuts the pieces from `first` on where parts of their copies begin, so that each part has separate pieces.
/// @param begins  bytes before each part, rising from 0; multiples of 16 if the copies begin at one.
/// @return the first piece of each part, and the number of all pieces.
std::vector<int> cut_parts(std::vector<CopyLaunch::Piece>& pieces, std::size_t first,
                           const std::vector<std::int64_t>& begins);

}  // namespace haloscope::device
