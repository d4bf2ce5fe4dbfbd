#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits neighbor_traits{
    .name = "neighbor",
    .summary =
        "neighbourhood collectives (MPI_Ineighbor_alltoallw on a distributed graph, straight from field memory); "
        "blocking: called where it is awaited; persistent: prepared once (MPI 4); packed: through host buffers",
    .colour = "#9d755d",
    .options = {"blocking", "persistent", "packed"},
    .listed = {"", "blocking", "persistent,packed"},
    .rules = one_of({"blocking", "persistent"}, "a persistent collective is started and awaited in two calls"),
    .single_messages = false,
    .needs = {.with = {{"blocking", {"neighbor-graph-blocking"}}, {"persistent", {"neighbor-graph-persistent"}}},
              .without = {"neighbor-graph-nonblocking"}}};

}  // namespace haloscope
