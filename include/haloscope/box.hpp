// Integer boxes: half-open ranges of cells in up to three dimensions. Dimension 0 (x) is contiguous in memory.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace haloscope {

/// A cell position or an extent, (x, y, z). Dimensions that a grid lacks have position 0 and extent 1.
using Index = std::array<std::int64_t, 3>;

/// A number of layers per dimension, each >= 0.
using Widths = std::array<int, 3>;

/// Half-open box [lo, hi) of cells.
struct Box {
  Index lo{0, 0, 0};
  Index hi{0, 0, 0};

  std::int64_t extent(int d) const {
    const auto i = static_cast<std::size_t>(d);
    return hi[i] > lo[i] ? hi[i] - lo[i] : 0;
  }
  std::int64_t volume() const { return extent(0) * extent(1) * extent(2); }
  bool empty() const { return extent(0) == 0 || extent(1) == 0 || extent(2) == 0; }
  bool contains(const Index& p) const {
    return p[0] >= lo[0] && p[0] < hi[0] && p[1] >= lo[1] && p[1] < hi[1] && p[2] >= lo[2] && p[2] < hi[2];
  }
  bool contains(const Box& b) const {
    if (b.empty()) return true;
    for (std::size_t d = 0; d < 3; ++d)
      if (b.lo[d] < lo[d] || b.hi[d] > hi[d]) return false;
    return true;
  }
  bool operator==(const Box&) const = default;
};

inline Box intersect(const Box& a, const Box& b) {
  Box r;
  for (std::size_t d = 0; d < 3; ++d) {
    r.lo[d] = std::max(a.lo[d], b.lo[d]);
    r.hi[d] = std::max(r.lo[d], std::min(a.hi[d], b.hi[d]));
  }
  return r;
}

inline Box shifted(Box b, const Index& by) {
  for (std::size_t d = 0; d < 3; ++d) {
    b.lo[d] += by[d];
    b.hi[d] += by[d];
  }
  return b;
}

/// Returns `b` with its low side moved out by `low[d]` and its high side by `high[d]` (negative widths shrink).
inline Box grown(Box b, const Widths& low, const Widths& high) {
  for (std::size_t d = 0; d < 3; ++d) {
    b.lo[d] -= low[d];
    b.hi[d] += high[d];
  }
  return b;
}

/// Returns the part of `a` outside `b`, as at most six disjoint boxes; whole planes first, so that long rows stay
/// long.
inline std::vector<Box> subtract(const Box& a, const Box& b) {
  std::vector<Box> rest;
  const Box inside = intersect(a, b);
  if (a.empty()) return rest;
  if (inside.empty()) return {a};
  Box core = a;
  for (const std::size_t d : {2UL, 1UL, 0UL}) {
    Box low = core, high = core;
    low.hi[d] = inside.lo[d];
    high.lo[d] = inside.hi[d];
    if (!low.empty()) rest.push_back(low);
    if (!high.empty()) rest.push_back(high);
    core.lo[d] = inside.lo[d];
    core.hi[d] = inside.hi[d];
  }
  return rest;
}

}  // namespace haloscope
