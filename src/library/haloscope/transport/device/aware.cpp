#include "haloscope/transport/device/buffered_link.hpp"
#include "haloscope/transport/device/message_pieces.hpp"

namespace haloscope {

std::unique_ptr<Link> open_aware(const LinkContext& context, const std::vector<std::string>&) {
  need_device(context, "aware");
  return open_buffered(context, {.host = device::Space::device});
}

}  // namespace haloscope
