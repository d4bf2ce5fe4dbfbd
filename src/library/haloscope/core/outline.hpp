// Outlines of exchanges, as text: for comparing exchanges of different ranks, and of different programs.
#pragma once

#include <string>

#include "haloscope/layout.hpp"
#include "haloscope/plan.hpp"

namespace haloscope {

/// Returns grid, process grid and all inputs of plans except names of quantities: equal on all ranks of one exchange.
/// One line.
std::string outline(const Plan& plan, const Layout& layout, std::size_t slots);

}  // namespace haloscope
