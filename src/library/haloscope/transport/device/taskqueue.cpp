#include "haloscope/core/names.hpp"
#include "haloscope/transport/device/task_link.hpp"

namespace haloscope {

std::unique_ptr<Link> open_taskqueue(const LinkContext& context, const std::vector<std::string>& words) {
  return open_task_link(
      context, {.copied = has(words, "device"), .queue = has(words, "queue"), .parts = number_of(words, "chunks", 1)});
}

}  // namespace haloscope
