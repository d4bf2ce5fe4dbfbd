// What the calls of the library have in common: the strategy that the environment asks for, and what reports say.
#pragma once

#include <mpi.h>

#include <string>

#include "haloscope/strategy.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

/// `given`, or what HALOSCOPE_STRATEGY of rank 0 says instead; then rank 0 says so, once per strategy. Collective.
/// @throws UsageError for a strategy that cannot be read, on all ranks alike.
Strategy chosen_strategy(MPI_Comm comm, const Strategy& given);

/// Whether halos are guarded: `asked`, or HALOSCOPE_GUARD of rank 0 where it is set: 1 or 0. Rank 0 says once when the
/// environment turns it on. Collective.
/// @throws UsageError for another value, on all ranks alike.
bool chosen_guard(MPI_Comm comm, bool asked);

/// Which strategy moves halos, what this rank sends in one exchange, and what the transport says of itself. One line.
std::string describe_exchange(const Strategy& strategy, const Plan& plan, const Link& link);

}  // namespace haloscope
