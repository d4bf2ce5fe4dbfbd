// Shares of work for a team of threads.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstdint>

#include "haloscope/box.hpp"

namespace haloscope {

/// One thread's part of a piece of work that a team shares: number `part` of `parts`.
struct Share {
  int part = 0, parts = 1;
};

/// Minimum cells of a shared sweep: below this, waking the team takes longer than it saves.
constexpr std::int64_t shared_sweep_cells = 4096;

inline std::int64_t share_begin(std::int64_t whole, Share share) { return whole * share.part / share.parts; }
inline std::int64_t share_end(std::int64_t whole, Share share) { return whole * (share.part + 1) / share.parts; }

/// Returns the dimension along which a box is divided: the slowest one with an extent of at least `parts`, else the
/// longest.
inline int cut_dimension(const Box& box, int parts) {
  int longest = 0;
  for (int d = 2; d >= 0; --d) {
    if (box.extent(d) >= parts) return d;
    if (box.extent(d) > box.extent(longest)) longest = d;
  }
  return longest;
}

/// Returns one share of a box, cut along cut_dimension(); may be empty.
inline Box part_of(const Box& box, Share share) {
  const int d = cut_dimension(box, share.parts);
  const auto i = static_cast<std::size_t>(d);
  Box part = box;
  part.lo[i] = box.lo[i] + share_begin(box.extent(d), share);
  part.hi[i] = box.lo[i] + share_end(box.extent(d), share);
  return part;
}

}  // namespace haloscope
