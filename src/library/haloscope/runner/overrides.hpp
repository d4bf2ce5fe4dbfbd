// Overrides by the environment, and reports, common to all calls of the library.
#pragma once

#include <mpi.h>

#include <string>

#include "haloscope/extend/transport.hpp"
#include "haloscope/strategy.hpp"

namespace haloscope {

/// Returns `requested`, or the strategy of HALOSCOPE_STRATEGY of rank 0, which rank 0 then reports, once per strategy.
/// Collective.
/// @throws UsageError, on all ranks, for a strategy that cannot be parsed.
Strategy chosen_strategy(MPI_Comm comm, const Strategy& requested);

/// Returns true if halos are guarded: `requested`, or HALOSCOPE_GUARD of rank 0 where it is set: 1 or 0. Rank 0 reports
/// once if the environment turns it on. Collective.
/// @throws UsageError, on all ranks, for another value.
bool chosen_guard(MPI_Comm comm, bool requested);

/// Returns true if large arrays of callers may be moved to huge pages: HALOSCOPE_HUGE_PAGES of this rank is 1 or not
/// set. Local. @throws UsageError for a value besides 1 and 0.
bool may_use_huge_pages();

/// Returns one line with the strategy that moves halos, the messages that this rank sends in one exchange, and the
/// report of the transport.
std::string describe_exchange(const Strategy& strategy, const Plan& plan, const Link& link);

}  // namespace haloscope
