#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits automatic_traits{
    .name = "auto",
    .summary =
        "tries p2p, p2p:datatype, persistent and, where ranks share a node, shared memory in the first exchanges, "
        "then keeps the fastest, for later programs too; quick: fewer trials; fresh: whatever earlier programs chose",
    .colour = "#1f2933",
    .options = {"quick", "fresh"},
    .single_messages = false,
    .needs = {.always = {"shared-load-store", "shared-flags"}}};

}  // namespace haloscope
