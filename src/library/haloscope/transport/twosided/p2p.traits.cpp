#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits p2p_traits{
    .name = "p2p",
    .summary =
        "nonblocking MPI messages, awaited together; blocking: MPI_Send, receives awaited one by one; testany: "
        "receives unpacked as they arrive; datatype: MPI gathers and scatters",
    .colour = "#4c78a8",
    .options = {"blocking", "testany", "datatype"},
    .listed = {"", "blocking", "testany", "datatype"},
    .rules = one_of({"blocking", "testany"}, "blocking waits for messages one by one; drop one of them")};

}  // namespace haloscope
