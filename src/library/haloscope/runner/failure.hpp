// Failures of one rank: their texts, and the ranks that receive them.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "haloscope/plan.hpp"

namespace haloscope {

/// Returns the text of a failure.
/// @param comm communicator of the plan's ranks. @param work the failed work, such as "the exchange of slot 0".
/// @return this rank, the work, the ranks that it exchanges messages with, and the reason.
std::string name_failure(MPI_Comm comm, const Plan& plan, const std::string& work, const std::string& reason);

/// @param plans  plans with the ranks of `comm`.
/// @return the peers of a SharedFailure: the ranks that this one exchanges messages with, and the two next to it in
///         `comm`, so that every rank is reached. Without this rank.
std::vector<int> ranks_to_warn(MPI_Comm comm, const std::vector<const Plan*>& plans);

}  // namespace haloscope
