#include "haloscope/transport/onesided/rules.hpp"

namespace haloscope {

extern const TransportTraits rma_fence_traits{
    .name = "rma-fence",
    .summary =
        "one-sided transfers between two fences per round; put or get; one window for all messages, per-message, "
        "or split: one per rank and its peers, so that fences are local; plain: no hints, no assertions",
    .colour = "#e45756",
    .options = {"put", "get", "single", "per-message", "split", "plain"},
    .listed = {"", "get", "split"},
    .rules =
        one_sided_rules({one_of({"single", "per-message", "split"}, "they are different sets of windows; give one")}),
    .collective_rounds = true,
    .single_messages = false,
    .needs = {.always = {"rma-fence-put"}, .with = {{"get", {"rma-fence-get"}}}}};

}  // namespace haloscope
