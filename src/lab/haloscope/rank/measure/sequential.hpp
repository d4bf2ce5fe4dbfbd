// The expected result of sweeps in place: the plain loop over the whole grid on one rank.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "haloscope/choice.hpp"

namespace haloscope {

/// Checksum (as Run::checksum) after `steps` sequential sweeps by App::plain. Rank 0 computes it and needs room for the
/// whole field. Collective.
std::uint64_t sequential_checksum(MPI_Comm comm, const Choice& choice, std::int64_t steps);

}  // namespace haloscope
