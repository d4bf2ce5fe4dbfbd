// Failures of one rank, in words that name it.
#pragma once

#include <mpi.h>

#include <string>

#include "haloscope/plan.hpp"

namespace haloscope {

/// @param comm  of the plan's ranks. @param work  what failed, as "the exchange of slot 0".
/// @return this rank, the work, the ranks that it exchanges messages with, and the reason.
std::string name_failure(MPI_Comm comm, const Plan& plan, const std::string& work, const std::string& reason);

}  // namespace haloscope
