// The first half of the checker: proves that all operations on the same memory are ordered. See check.hpp.
#pragma once

#include <string>
#include <vector>

#include "haloscope/program.hpp"

namespace haloscope {

/// Returns the name of an operation in the checker's messages.
std::string describe(const Program& program, int op);
/// Returns a topological order of the operations, shorter than the program if the dependencies have a cycle.
std::vector<int> sorted_ops(const Program& program);
/// Returns the slot of a quantity that a sweep reads or writes, relative like Op::slot.
int slot_read(const Step& step, const Stage& stage, int sweep, int quantity, int slot, int into);
int slot_of(const Step& step, int quantity, int slot);
/// Returns an empty text, or the operations of one rank that access the same points unordered, or the message that is
/// not handled in order.
/// @param exchanged  quantities of the step that the plan moves, in its order
std::string check_order(const Step& step, const Stage& stage, const std::vector<int>& exchanged, const Plan& plan,
                        const Program& program);

}  // namespace haloscope
