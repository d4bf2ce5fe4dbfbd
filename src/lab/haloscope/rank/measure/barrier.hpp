// Barriers around what is timed, and how long that must last beside them.
#pragma once

#include "haloscope/rank/measure/measure.hpp"

namespace haloscope {

/// Collective: a barrier that the watchdog watches. @return the time after it (White & Dongarra 2011, IV-C: a barrier
/// before both clock readings).
double time_after_barrier(Session& session);

/// Collective: the largest value of all ranks.
double largest(double value, MPI_Comm comm);

/// Collective: seconds that something timed between barriers shall last, at least `seconds`. Ranks leave a barrier
/// apart by up to what it takes, and that is in the time; so it shall last 30 barriers too. Cost: 5 barriers, one
/// reduction.
double beside_barriers(Session& session, double seconds);

}  // namespace haloscope
