// Gathering a value of every rank on all ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace haloscope {

/// The list of every rank of `comm`. Collective; cost: two gathers to all.
std::vector<std::vector<std::int64_t>> lists_of_all(MPI_Comm comm, const std::vector<std::int64_t>& mine);

/// Whether `value` holds on any rank of `comm`, the same answer on all. Collective; cost: one reduction to all.
bool anywhere(bool value, MPI_Comm comm);

}  // namespace haloscope
