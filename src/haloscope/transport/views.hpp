// What the memory of fields must be like for a plan to move them.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/field/overlap.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

/// The points of a field that an exchange reads or writes: arrays need no room beyond edges where it fills nothing.
Box points_moved(const Plan& plan, int q);

/// Where contributions of one direction arrive, in coordinates of its own; one point where there are none.
Box landing_box(const Plan& plan, int q);

/// The dimensions of a view, the one whose points lie closest to each other first.
std::array<int, 3> dims_by_stride(const SlotView& view);

/// @throws UsageError for a null pointer. @param name  of the field.
void require_memory(const SlotView& view, const std::string& name);

/// Local. @param on_device  whether the views are of memory of a device.
/// @throws UsageError when the views do not fit the plan.
void check_views(const Plan& plan, const Views& views, bool on_device);

/// What check_views() looks at again where fields have moved. Local; cost: a comparison for each pair of fields whose
/// memory interleaves.
/// @throws UsageError where two fields share memory, naming both. The same array may be in several slots, which take
///         turns.
void check_apart(const Plan& plan, const Views& views);

/// "fields 'u' (number 1) and 'v' (number 2)", with their slots where those differ.
std::string name_sharing(const std::vector<Quantity>& quantities, const std::pair<FieldPoints, FieldPoints>& both);

}  // namespace haloscope
