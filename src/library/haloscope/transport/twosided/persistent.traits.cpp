#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits persistent_traits{
    .name = "persistent",
    .summary = "MPI messages prepared once per slot and restarted in every exchange; testany and datatype as for p2p",
    .colour = "#72b7b2",
    .options = {"testany", "datatype"},
    .listed = {"", "testany", "datatype"}};

}  // namespace haloscope
