#include "haloscope/extend/transport_traits.hpp"

namespace haloscope {
namespace {

std::vector<OptionRule> rules_of_buffers() {
  auto all = one_of({"pinned", "pageable"}, "host buffers are one or the other; drop one of them");
  all.push_back({{"pageable", "stream"},
                 "a copy from ordinary memory holds the thread that has to let the stream go on; drop one of them"});
  return all;
}

}  // namespace

extern const TransportTraits staged_traits{
    .name = "staged",
    .summary =
        "device: packed there, copied to host memory, sent by MPI, and back; pageable: through ordinary memory; "
        "stream: the stream itself waits for messages, so all its work is enqueued before they are there",
    .colour = "#4c78a8",
    .options = {"pinned", "pageable", "stream"},
    .listed = {"", "pageable", "stream"},
    .rules = rules_of_buffers(),
    .single_messages = false,
    .device = true,
    .staged = true,
    .has_places = true};

}  // namespace haloscope
