#include "haloscope/transport/onesided/rules.hpp"

namespace haloscope {

extern const TransportTraits rma_lock_traits{
    .name = "rma-lock",
    .summary =
        "one-sided transfers, each under a separate lock; put or get; readiness by empty messages, polled flags, "
        "or a barrier before and after the gets of a round; one window, or per-message; plain: no hints, no "
        "assertions; separate: precautions of MPI's separate memory model",
    .colour = "#b279a2",
    .options = {"put", "get", "single", "per-message", "message", "flag", "barrier", "plain", "separate"},
    .listed = {"", "get,flag"},
    .rules = one_sided_rules({one_window_or_many(), one_readiness()}),
    .collective_options = {"barrier"},
    .needs = {.always = {"rma-lock-put"}, .with = {{"get", {"rma-lock-get"}}, {"barrier", {"rma-lock-get"}}}}};

}  // namespace haloscope
