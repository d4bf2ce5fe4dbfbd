#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits staged_traits{
    .name = "staged",
    .summary = "device: packed there, copied to host memory, sent by MPI, and back; pageable: through ordinary memory",
    .colour = "#4c78a8",
    .options = {"pinned", "pageable"},
    .listed = {"", "pageable"},
    .rules = one_of({"pinned", "pageable"}, "host buffers are one or the other; drop one of them"),
    .single_messages = false,
    .device = true,
    .staged = true,
    .has_places = true};

}  // namespace haloscope
