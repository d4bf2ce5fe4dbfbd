// Tracks as scripts of the simulator's engine, one rank for each.
#pragma once

#include <vector>

#include "haloscope/model/track.hpp"

namespace haloscope::model {

/// The script of every track. A message is a route for each track that it goes to or may come from. Operations are
/// numbered as Track::action() takes them.
/// @throws UsageError for an action that waits for a later one of its own lane.
std::vector<simulate::Script> make_scripts(const std::vector<Track>& tracks);

}  // namespace haloscope::model
