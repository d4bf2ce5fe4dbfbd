#include "haloscope/device/exchange.hpp"
#include "haloscope/transport_traits.hpp"

namespace haloscope {
namespace {

std::vector<OptionRule> rules() {
  auto all = one_of({"pinned", "device"}, "messages are packed into one memory or the other; drop one of them");
  for (const auto& rule : one_of({"channel", "queue"}, "the kernel notifies the CPU in one way; drop one of them"))
    all.push_back(rule);
  return all;
}

}  // namespace

extern const TransportTraits taskqueue_traits{
    .name = "taskqueue",
    .summary =
        "device: one kernel a round packs, has the CPU send each part that is ready, and unpacks what arrives; "
        "device: packed there and copied; queue: one list of parts; chunks: parts of a message",
    .colour = "#b279a2",
    .options = {"pinned", "device", "channel", "queue"},
    .numbers = {{"chunks", 1, device::most_parts}},
    .listed = {"", "device,chunks=4", "queue,chunks=2"},
    .rules = rules(),
    .single_messages = false,
    .device = true,
    .signals = true};

}  // namespace haloscope
