// The time of repeated programs: tracks are carried out by the simulator's engine for a few rounds.
//
// Tracks start each round when they have finished the one before, so delays spread as they do between ranks; after a
// few rounds all advance as the slowest does, and its mean round is the time. Nothing here knows a schedule: what
// overlaps follows from lanes, dependencies and waits alone.
#pragma once

#include <vector>

#include "haloscope/model/timeline.hpp"

namespace haloscope::model {

/// Seconds per round of one track in step with the others, by term along its critical path, and how long it is busy.
struct RoundTime {
  double seconds = 0;
  Terms terms{};        ///< add up to `seconds`
  Terms busy{};         ///< the same terms over all lanes, hidden or not; message: the longest flights received
  double unhidden = 0;  ///< everything in turn but what other work could hide: flights, except for their held parts
  double term(Term which) const { return terms[static_cast<std::size_t>(which)]; }
  /// Seconds per round not spent waiting for a late peer.
  double working() const { return seconds - term(Term::wait); }
};

/// The mean round of every track, all of which have the efficiency of the first.
/// @throws simulate::Deadlock when every track waits for a message: they describe ranks that take turns and cannot
///         represent one another. Cost O(tracks x actions x rounds).
std::vector<RoundTime> steady_state(const std::vector<Timeline>& tracks);

}  // namespace haloscope::model
