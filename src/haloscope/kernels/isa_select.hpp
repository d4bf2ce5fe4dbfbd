// From an instruction set's name to its table.
#pragma once

#include <string>

#include "haloscope/kernels/isa_table.hpp"

namespace haloscope {

/// @param isa  one of kernel_isas(), or "" for the best
/// @throws UsageError for any other name.
const IsaTable& isa_table(const std::string& isa);

}  // namespace haloscope
