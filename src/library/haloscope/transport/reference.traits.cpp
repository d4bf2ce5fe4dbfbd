#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits reference_traits{
    .name = "reference",
    .summary =
        "the oracle: every ghost point fetched from its owner in one collective call, independent of the plan's "
        "messages; direct pattern only, no options",
    .listed = {},
    .single_messages = false};

}  // namespace haloscope
