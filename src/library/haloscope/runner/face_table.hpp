// Tables for kernels of faces, made from messages of a plan.
#pragma once

#include <cstddef>
#include <functional>

#include "haloscope/device/kernels.hpp"
#include "haloscope/extend/plan.hpp"

namespace haloscope {

/// Returns the table of one slot of field 0. Messages that do not hold own cells alone are not among those that sweeps
/// pack.
/// @param element_bytes  of the field. @param place returns the address of a message in device memory, by its number.
/// @throws Error for a plan of more messages than a table has.
device::FaceTable face_table(const Plan& plan, std::int64_t element_bytes, const std::function<std::byte*(int)>& place);

}  // namespace haloscope
