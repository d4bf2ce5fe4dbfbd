#include "haloscope/transport/device/buffered_link.hpp"

namespace haloscope {

std::unique_ptr<Link> open_aware(const LinkContext& context, const std::vector<std::string>&) {
  return open_buffered(context, {.host = device::Space::device});
}

}  // namespace haloscope
