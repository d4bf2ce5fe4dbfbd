#include "haloscope/transport/onesided/rules.hpp"

namespace haloscope {

extern const TransportTraits rma_lockall_traits{
    .name = "rma-lockall",
    .summary =
        "one-sided transfers inside one epoch that lasts as long as the link, completed by flushes or, rget, by "
        "requests; other options as for rma-lock",
    .colour = "#ff9da6",
    .options = {"put", "get", "rget", "single", "per-message", "message", "flag", "barrier", "plain", "separate"},
    .listed = {"", "flag", "rget"},
    .rules = one_sided_rules({one_window_or_many(), one_readiness()}, true),
    .collective_options = {"barrier"},
    .needs = {.always = {"rma-lockall-put"},
              .with = {{"get", {"rma-lockall-get"}}, {"barrier", {"rma-lockall-get"}}, {"rget", {"rma-rget"}}}}};

}  // namespace haloscope
