#include "haloscope/core/names.hpp"
#include "haloscope/transport/device/buffered_link.hpp"

namespace haloscope {

std::unique_ptr<Link> open_staged(const LinkContext& context, const std::vector<std::string>& words) {
  const bool pageable = has(words, "pageable");
  return open_buffered(context, "staged", pageable ? device::Space::pageable : device::Space::pinned);
}

}  // namespace haloscope
