// What an exchange moves, as text: for comparing exchanges of different ranks, and of different programs.
#pragma once

#include <string>

#include "haloscope/layout.hpp"
#include "haloscope/plan.hpp"

namespace haloscope {

/// Grid, process grid and all that plans are made from, names of quantities apart: the same on all ranks of one
/// exchange.
/// One line.
std::string outline(const Plan& plan, const Layout& layout, std::size_t slots);

}  // namespace haloscope
