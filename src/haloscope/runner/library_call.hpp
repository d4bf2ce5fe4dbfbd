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

/// Which strategy moves halos, what this rank sends in one exchange, and what the transport says of itself. One line.
std::string describe_exchange(const Strategy& strategy, const Plan& plan, const Link& link);

}  // namespace haloscope
