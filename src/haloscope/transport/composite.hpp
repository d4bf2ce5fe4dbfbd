// Two transports as one: shared memory between the ranks of a node, another transport between nodes.
#pragma once

#include <memory>

#include "haloscope/strategy.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

/// Opens what a strategy names, joined transports included. Collective over `context.comm`.
/// @throws what the transports' open() throws.
std::unique_ptr<Link> open_link(const Strategy& strategy, const LinkContext& context);

}  // namespace haloscope
