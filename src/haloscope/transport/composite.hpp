// Two transports as one: shared memory between the ranks of a node, another transport between nodes.
#pragma once

#include <memory>

#include "haloscope/core/strategy.hpp"
#include "haloscope/transport/transport.hpp"

namespace haloscope {

/// Opens what a strategy names, joined transports included. Collective over `context.comm`.
/// @throws what the transports' open() throws.
std::unique_ptr<Link> open_link(const Strategy& strategy, const LinkContext& context);

/// Nodes that the environment asks to emulate: HALOSCOPE_NODES=N or N:round-robin; empty when it is not set.
/// @throws UsageError for anything else, or more nodes than ranks.
std::vector<int> nodes_from_environment(int ranks);

}  // namespace haloscope
