#include "haloscope/transport/onesided/rules.hpp"

namespace haloscope {

extern const TransportTraits rma_pscw_traits{
    .name = "rma-pscw",
    .summary =
        "one-sided transfers under post, start, complete and wait, pairwise; put or get; one window per round, or "
        "per-message, which makes messages independent of each other; plain: no hints, no assertions",
    .colour = "#f58518",
    .options = {"put", "get", "single", "per-message", "plain"},
    .listed = {"", "get,per-message"},
    .rules = one_sided_rules({one_window_or_many()}),
    .single_option = "per-message",
    .needs = {.always = {"rma-pscw-put"}, .with = {{"get", {"rma-pscw-get"}}}}};

}  // namespace haloscope
