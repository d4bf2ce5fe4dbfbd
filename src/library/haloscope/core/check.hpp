// The checker: proves on small grids that programs never read data that have not arrived or been computed. Pure; used
// by tests.
#pragma once

#include <string>
#include <vector>

#include "haloscope/program.hpp"

namespace haloscope {

/// The plans and programs of all ranks for one stage.
struct StagePrograms {
  const Stage* stage;
  std::vector<int> exchanged;  ///< quantities of the step that its plans move, in order
  std::vector<Plan> plans;     ///< one per rank
  std::vector<Program> programs;
  int depth = 0;  ///< time steps that its exchange serves; 0: the steps of its programs
};

/// Checks the programs of all ranks of a layout together, stage after stage.
///
/// It proves two things. (1) Order: any two operations of a rank that touch the same memory (points of a quantity,
/// message buffers, in-flight receives, numbers of a reduction), at least one of them writing, are ordered by
/// `after`, by the comm lane or by a stream; so every legal interleaving gives the same result. (2) Values: it
/// executes one interleaving on (global point, version) pairs: every point a sweep declares valid is computed only
/// from correct points of the correct version, and the owned points of every quantity hold its last version at the
/// end. A sweep in place must find the new version before a cell and the old one after it, as the sequential sweep
/// does.
/// @return empty, or a description of the fault: rank, operation, point.
/// Cost O(ranks x (operations^2 + points x steps)); small grids only.
std::string check_step(const Layout& layout, const Step& step, const std::vector<StagePrograms>& stages);

/// The same for a step of one stage.
std::string check_programs(const Layout& layout, const Step& step, const std::vector<Plan>& plans,
                           const std::vector<Program>& programs);

}  // namespace haloscope
