// Whether points of two arrays share memory: exact for any strides, since components of structs interleave.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "haloscope/view.hpp"

namespace haloscope {

/// The points of a box of a view.
struct PointSet {
  SlotView view;
  Box points;  ///< not empty
};

/// A part of memory, by addresses.
struct Extent {
  std::int64_t begin = 0, end = 0;
};

/// From the first to the last byte of all points, with what lies between them.
Extent extent_of(const PointSet& set);

/// Whether all strides and points stay within an address space. Other sets have no extent.
bool is_addressable(const PointSet& set);

/// Whether a byte belongs to points of both. Points of each set share no memory among themselves.
/// Cost: some comparisons for arrays apart, of equal strides, or members of the same structs; for arrays of different
/// strides that interleave, at most about one step for each row.
bool share_memory(const PointSet& a, const PointSet& b);

/// The points of a field that are used in a slot.
struct FieldPoints {
  int field = 0, slot = 0;
  PointSet set;
};

/// Two that share memory, the one of the field that comes first before the other; none.
/// @param may_share  where true, two need not be apart.
/// Cost: a comparison for each pair whose memory interleaves.
std::optional<std::pair<FieldPoints, FieldPoints>> find_sharing(
    const std::vector<FieldPoints>& all, const std::function<bool(const FieldPoints&, const FieldPoints&)>& may_share);

}  // namespace haloscope
