// The time of repeated programs: the simulator's engine runs timelines for a few rounds.
//
// Timelines start each round when they have finished the one before, so delays spread as they do between ranks; after a
// few rounds all advance as the slowest does, and its mean round is the time. Nothing here depends on a schedule:
// overlap follows from lanes, dependencies and waits alone.
#pragma once

#include <vector>

#include "haloscope/model/timeline.hpp"

namespace haloscope::model {

/// Seconds per round of one timeline in step with the others, by term along its critical path, and its busy seconds.
struct RoundTime {
  double seconds = 0;
  Terms terms{};        ///< add up to `seconds`
  Terms busy{};         ///< the same terms over all lanes, hidden or not; message: the longest flights received
  double unhidden = 0;  ///< the sum of everything that other work cannot hide, receiver-side parts of flights included
  double term(Term which) const { return terms[static_cast<std::size_t>(which)]; }
  /// Seconds per round not spent waiting for a late peer.
  double working() const { return seconds - term(Term::wait); }
};

/// The mean round of every timeline, all of which have the efficiency of the first.
/// @throws simulate::Deadlock when every timeline waits for a message: they describe ranks that take turns and cannot
///         represent one another. Cost O(timelines x operations x rounds).
std::vector<RoundTime> steady_state(const std::vector<Timeline>& tracks);

}  // namespace haloscope::model
