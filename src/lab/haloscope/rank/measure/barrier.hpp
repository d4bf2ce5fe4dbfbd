// Barriers around timed work, and its minimum time compared with them.
#pragma once

#include "haloscope/rank/measure/measure.hpp"

namespace haloscope {

/// Collective: a barrier that the watchdog watches. @return the time after it (White & Dongarra 2011, IV-C: a barrier
/// before both clock readings).
double time_after_barrier(Session& session);

/// Collective: the largest value of all ranks.
double largest(double value, MPI_Comm comm);

/// Collective: returns the minimum time of work between barriers, at least `seconds`. Ranks leave a barrier up to its
/// own time apart, which is in the measured time; so the work shall last at least 30 barriers. Cost: 5 barriers, one
/// reduction.
double beside_barriers(Session& session, double seconds);

}  // namespace haloscope
