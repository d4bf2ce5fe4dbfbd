#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits shared_traits{
    .name = "shared",
    .summary =
        "stores into the neighbour's halos in memory that a node's ranks share (push, the default); pull: loads "
        "from the neighbour's field; packed: packs into the neighbour's buffer, fields stay private; fence: push "
        "with MPI_Win_fence",
    .colour = "#54a24b",
    .options = {"push", "pull", "packed", "fence"},
    .listed = {"", "pull", "packed", "fence"},
    .rules = one_of({"push", "pull", "packed", "fence"}, "they are different ways to move the bytes; give one"),
    .collective_options = {"fence"},
    .shared_fields = true,
    .private_option = "packed",
    .inside_nodes = true,
    .needs = {.always = {"shared-load-store", "shared-flags"}}};

}  // namespace haloscope
