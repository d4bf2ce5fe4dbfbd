// Checks that a plan can move the memory of fields.
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/extend/transport.hpp"
#include "haloscope/field/overlap.hpp"

namespace haloscope {

/// Returns the points of a field that an exchange reads or writes: arrays need no room beyond edges where it fills
/// nothing.
Box points_moved(const Plan& plan, int q);

/// Returns the dimensions of a view, starting with the one whose points lie closest to each other.
std::array<int, 3> dims_by_stride(const SlotView& view);

/// Returns the memory from the first to the last of some points.
std::span<std::byte> memory_of(const SlotView& view, const Box& points);

/// Checks an address. @throws UsageError for a null pointer. @param name of the field.
void require_memory(const SlotView& view, const std::string& name);

/// Checks that points lie apart in memory. @throws UsageError for strides with which they do not. @param name  of the
/// field.
void require_apart(const SlotView& view, const Box& points, const std::string& name);

/// Checks views. Local. @param on_device true: the views are of memory of a device.
/// @throws UsageError when the views do not fit the plan.
void check_views(const Plan& plan, const Views& views, bool on_device);

/// Repeats the checks of check_views() for fields that have moved. Local; cost: a comparison for each pair of fields
/// whose memory interleaves.
/// @throws UsageError where two fields share memory, naming both. The same array may be in several slots, which take
///         turns.
void check_apart(const Plan& plan, FieldViews views);

/// Returns "fields 'u' (number 1) and 'v' (number 2)", with their slots where they differ.
/// @param of_block  fields of each block, to name the block too; 0: one block.
std::string name_sharing(const std::vector<Quantity>& quantities, const std::pair<FieldPoints, FieldPoints>& both,
                         int of_block = 0);

}  // namespace haloscope
