// Gathers of values of every rank on all ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace haloscope {

/// Returns the list of every rank of `comm`. Collective; cost: two gathers to all.
std::vector<std::vector<std::int64_t>> lists_of_all(MPI_Comm comm, const std::vector<std::int64_t>& mine);

/// Returns true on all ranks if `value` is true on any rank of `comm`. Collective; cost: one reduction to all.
bool anywhere(bool value, MPI_Comm comm);

}  // namespace haloscope
