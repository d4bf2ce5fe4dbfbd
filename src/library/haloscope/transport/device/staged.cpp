#include "haloscope/core/names.hpp"
#include "haloscope/transport/device/buffered_link.hpp"

namespace haloscope {

std::unique_ptr<Link> open_staged(const LinkContext& context, const std::vector<std::string>& words) {
  return open_buffered(context, {.host = has(words, "pageable") ? device::Space::pageable : device::Space::pinned,
                                 .words = has(words, "stream")});
}

}  // namespace haloscope
