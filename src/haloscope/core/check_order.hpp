// The first half of the checker: everything that touches the same memory is ordered. See check.hpp.
#pragma once

#include <string>
#include <vector>

#include "haloscope/program.hpp"

namespace haloscope {

/// An operation as the checker's messages name it.
std::string describe(const Program& program, int op);
/// A topological order of the operations, shorter than the program if the dependencies have a cycle.
std::vector<int> sorted_ops(const Program& program);
/// Empty, or which operations of one rank touch the same cells unordered, or which message is not handled in order.
std::string check_order(const Stage& stage, const Plan& plan, const Program& program);

}  // namespace haloscope
