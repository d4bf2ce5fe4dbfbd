#include "haloscope/transport/onesided/rules.hpp"

namespace haloscope {

extern const TransportTraits rma_lock_traits{
    .name = "rma-lock",
    .summary =
        "one-sided transfers, each under a separate lock; put or get; readiness by empty messages or polled "
        "flags; one window, or per-message; plain: no hints, no assertions; separate: precautions of MPI's "
        "separate memory model",
    .colour = "#b279a2",
    .options = {"put", "get", "single", "per-message", "message", "flag", "plain", "separate"},
    .listed = {"", "get,flag"},
    .rules = one_sided_rules({one_window_or_many(), message_or_flag()}),
    .needs = {.always = {"rma-lock-put"}, .with = {{"get", {"rma-lock-get"}}}}};

}  // namespace haloscope
