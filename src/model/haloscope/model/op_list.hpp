// Timelines as op lists of the simulator's engine, one rank for each.
#pragma once

#include <vector>

#include "haloscope/model/timeline.hpp"

namespace haloscope::model {

/// The op list of every timeline. A message has a route for each timeline that it goes to or may come from. Operations
/// are numbered as Timeline::action() takes them.
/// @throws UsageError for an operation that waits for a later one of its lane.
std::vector<simulate::OpList> make_op_lists(const std::vector<Timeline>& tracks);

}  // namespace haloscope::model
