// Tracks as scripts of the simulator's engine, one rank for each.
#pragma once

#include <vector>

#include "haloscope/model/timeline.hpp"

namespace haloscope::model {

/// The script of every track. A message is a route for each track that it goes to or may come from. Operations are
/// numbered as Timeline::action() takes them.
/// @throws UsageError for an action that waits for a later one of its own lane.
std::vector<simulate::OpList> make_op_lists(const std::vector<Timeline>& tracks);

}  // namespace haloscope::model
