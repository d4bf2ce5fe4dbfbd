#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits ipc_traits{
    .name = "ipc",
    .summary = "device: packed by the sender's kernel straight into the receiver's memory, on one machine",
    .colour = "#54a24b",
    .single_messages = false,
    .device = true};

}  // namespace haloscope
