// Costs of messages: alone, several concurrently, and as the collective calls of reductions.
//
// A locality of a profile has the time of a single message by segments, and a contention law with three numbers, which
// ranks.cpp applies to concurrent messages on one resource. A message of time t occupies that resource for
// t - latency + gap, where the latency is the time of no bytes.
//  - `gap_s` (default: the latency): seconds that a message occupies it for in addition to its bytes. The rest of
//    latencies overlaps.
//  - `shared` (default 1): another message the same way takes that part of the time that it occupies the resource for.
//  - `duplex` (default 2 inside a node, 1 between nodes): opposite messages take that part less 1. 1 = full duplex.
// With the default gap, m equal messages take 1 + shared (m - 1) times one, and opposite ones `duplex` times that.
// Source: Davis 2017, sections 5.3.4 and 5.3.5; gap: Culler et al. 1993 (LogP); max-rate: Gropp, Olson, Samfass 2016.
#pragma once

#include <algorithm>

#include "haloscope/model/profile.hpp"
#include "haloscope/stage.hpp"

namespace haloscope::model {

/// Seconds of one message without concurrent ones. @throws UnavailableError without a network. Source: table 5.9.
double message_time(const Profile& profile, Locality near, double bytes);

struct Contention {
  double shared = 1, duplex = 1;
  double overlaps_s = 0;  ///< of a latency: seconds in which a message occupies nothing; below 0 if the gap is longer

  /// Seconds that a message occupies its shared resource, if it takes `seconds` alone.
  double occupied(double seconds) const { return std::max(0.0, seconds - overlaps_s); }
};
Contention contention(const Profile& profile, Locality near);

/// Seconds of an all-reduce of one number, between measured rank counts linear in log2(ranks), beyond the last one the
/// last value. @throws UnavailableError where none was measured.
double allreduce_time(const Profile& profile, int ranks);

/// Seconds of all calls of a reduction, from the last rank's numbers until every rank has the result. Gathers are trees
/// of pair-wise steps that fill the cores of a node before the next one; where the all-gather of one number was
/// measured, they take that time and the tree's additional time for further bytes. Source: Davis 2017, eq. 5.42.
/// @throws UnavailableError when the profile lacks a cost that its calls need.
double reduction_time(const Profile& profile, const Reduction& reduction, int ranks);

}  // namespace haloscope::model
