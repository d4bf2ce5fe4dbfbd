#include "haloscope/transport_traits.hpp"

namespace haloscope {

extern const TransportTraits partitioned_traits{
    .name = "partitioned",
    .summary =
        "partitioned messages (MPI 4), one partition per thread, made ready by the thread that has packed it where "
        "MPI was initialised for that; late: made ready together once all have packed",
    .colour = "#eeca3b",
    .options = {"late"},
    .listed = {"", "late"},
    .concurrent_calls = true,
    .needs = {.always = {"partitioned"}}};

}  // namespace haloscope
