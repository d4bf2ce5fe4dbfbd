// The checker: proves on small grids that a program never reads what is not yet there. Pure; used by tests.
#pragma once

#include <string>
#include <vector>

#include "haloscope/program.hpp"

namespace haloscope {

/// Check the programs of all ranks of a layout together.
///
/// Two things are shown. (1) Order: any two operations of a rank that touch the same memory (field cells, message
/// buffers, in-flight receives), at least one writing, are ordered by `after`, by the comm lane or by a stream; so
/// every legal interleaving gives the same result. (2) Values: one legal interleaving is executed on (global cell,
/// time) pairs: every cell a sweep declares valid is computed only from right cells of the right time, and the owned
/// cells hold time `steps` at the end. A sweep in place must find the new time before a cell and the old one behind it,
/// as the sequential sweep does.
/// @param plans, programs  one per rank of `layout`, the same length
/// @return empty, or what is wrong: rank, operation, cell. Cost O(ranks x (operations^2 + cells x steps)); small grids
/// only.
std::string check_programs(const Layout& layout, const Stage& stage, const std::vector<Plan>& plans,
                           const std::vector<Program>& programs);

}  // namespace haloscope
