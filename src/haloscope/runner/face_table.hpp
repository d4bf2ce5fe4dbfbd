// From messages of a plan to what the kernels of faces look up.
#pragma once

#include <cstddef>
#include <functional>

#include "haloscope/device/kernels.hpp"
#include "haloscope/plan.hpp"

namespace haloscope {

/// The table of one slot of field 0.
/// @param element_bytes  of the field. @param place  where a message lies in device memory, by its number.
/// @throws Error for a plan whose messages hold cells that the rank does not own.
device::FaceTable face_table(const Plan& plan, std::int64_t element_bytes, const std::function<std::byte*(int)>& place);

}  // namespace haloscope
