// Two transports as one: shared memory between the ranks of a node, another transport between nodes.
#pragma once

#include <memory>

#include "haloscope/strategy.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

/// Opens the transport of a strategy, or the pair of joined transports. Collective over `context.comm`.
/// @throws as open() of the transports.
std::unique_ptr<Link> open_link(const Strategy& strategy, const LinkContext& context);

}  // namespace haloscope
