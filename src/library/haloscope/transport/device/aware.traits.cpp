#include "haloscope/extend/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits aware_traits{
    .name = "aware",
    .summary = "device: packed there and passed to an MPI that takes device memory",
    .colour = "#e4894b",
    .single_messages = false,
    .device = true,
    .has_places = true,
    .needs = {.always = {"device-aware"}}};

}  // namespace haloscope
