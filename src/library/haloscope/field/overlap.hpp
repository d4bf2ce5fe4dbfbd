// Overlap of arrays in memory: exact for any strides, since components of structs interleave.
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

/// Returns the memory from the first to the last byte of all points, including gaps.
Extent extent_of(const PointSet& set);

/// Returns true if all strides and points stay within an address space. Other sets have no extent.
bool is_addressable(const PointSet& set);

/// Returns true if a byte belongs to points of both sets. Points of one set must not share memory with each other.
/// Cost: some comparisons for arrays apart, of equal strides, or members of the same structs; for arrays of different
/// strides that interleave, at most about one step for each row.
bool share_memory(const PointSet& a, const PointSet& b);

/// The points of a field that are used in a slot.
struct FieldPoints {
  int field = 0, slot = 0;
  PointSet set;
};

/// Returns two that share memory, in the order of their fields; empty if none do.
/// @param may_share  returns true for two that may share memory.
/// Cost: a comparison for each pair whose memory interleaves.
std::optional<std::pair<FieldPoints, FieldPoints>> find_sharing(
    const std::vector<FieldPoints>& all, const std::function<bool(const FieldPoints&, const FieldPoints&)>& may_share);

}  // namespace haloscope
