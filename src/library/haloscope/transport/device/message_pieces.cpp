#include "haloscope/transport/device/message_pieces.hpp"

#include "haloscope/error.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope {

std::vector<BlockCopy> message_copies(const LinkContext& context, int id, int slot, std::byte* buffer) {
  const Message& message = context.plan->messages[id];
  std::vector<BlockCopy> copies;
  if (!message.out && contiguous_span(*context.views, slot, message) == buffer) return copies;
  for (const Region& region : message.regions) {
    const SlotView& view = (*context.views)[region.quantity][slot];
    copies.push_back(message.out ? region_to_buffer(view, region.box, buffer)
                                 : buffer_to_region(view, region.box, buffer));
    buffer += region.box.volume() * view.element_bytes();
  }
  return copies;
}

MessagePieces::MessagePieces(const LinkContext& context, int sets,
                             const std::function<std::byte*(int, int, int)>& buffer)
    : device_(*context.device), slots_(context.slots()), messages_(context.messages()) {
  std::vector<device::CopyLaunch::Piece> all;
  for (int set = 0; set < sets; ++set)
    for (int slot = 0; slot < slots_; ++slot)
      for (int id = 0; id < messages_; ++id) {
        const int first = static_cast<int>(all.size());
        device::cut_copies(message_copies(context, id, slot, buffer(set, slot, id)), all);
        ranges_.push_back({first, static_cast<int>(all.size())});
      }
  pieces_ = device::PieceList(device_, all);
}

void MessagePieces::move_on(device::Stream& stream, Ids ids, int set, int slot) const {
  if (ids.empty()) return;
  if (ids.back() - ids.front() + 1 != static_cast<int>(ids.size()))
    throw Error(Exit::failed, "messages of a set are not consecutive; packing them together would include others");
  const int first = ranges_[index(set, slot, ids.front())].first, end = ranges_[index(set, slot, ids.back())].second;
  device_.kernels().copy(stream, pieces_.range(first, end));
}

}  // namespace haloscope
