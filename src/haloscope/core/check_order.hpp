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
/// The slot of a quantity that a sweep reads or writes, relative as Op::slot.
int slot_read(const Step& step, const Stage& stage, int sweep, int quantity, int slot, int into);
int slot_of(const Step& step, int quantity, int slot);
/// Empty, or which operations of one rank touch the same points unordered, or which message is not handled in order.
/// @param exchanged  quantities of the step that the plan moves, in its order
std::string check_order(const Step& step, const Stage& stage, const std::vector<int>& exchanged, const Plan& plan,
                        const Program& program);

}  // namespace haloscope
