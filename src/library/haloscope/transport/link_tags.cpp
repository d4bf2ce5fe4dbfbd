#include "haloscope/transport/link_tags.hpp"

#include <algorithm>
#include <array>

#include "haloscope/comm/together.hpp"

namespace haloscope {
namespace {

/// Returns one more than the largest tag of a plan; with several slots, of all ranks' plans, since tags of later
/// slots follow.
int messages_of(MPI_Comm comm, const Plan& plan, int slots) {
  std::array<int, 1> messages{0};
  for (const Message& message : plan.messages) messages[0] = std::max(messages[0], message.tag + 1);
  if (slots > 1) reduce_together(comm, messages, MPI_INT, MPI_MAX);
  return messages[0];
}

}  // namespace

LinkTags::LinkTags(LibraryComm& on, const Plan& plan, int slots)
    : LinkTags(on, messages_of(on.comm(), plan, slots), slots) {}

LinkTags::LinkTags(LibraryComm& on, int messages, int slots)
    : range_(on.reserve_tags(MessageTags::needed(messages, slots))), tags_(range_, messages) {}

MessageTags::MessageTags(const TagRange& reserved, int messages_of_slot)
    : first(reserved.first()), messages(messages_of_slot) {}

}  // namespace haloscope
