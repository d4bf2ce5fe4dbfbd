// Packing and unpacking of messages on a device: the regions of all messages as pieces of the copy kernel, in device
// memory.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/extend/transport.hpp"

namespace haloscope {

/// Returns the copies between a message's regions and its buffer, in the order of the buffer; none where the regions
/// lie in the buffer.
std::vector<BlockCopy> message_copies(const LinkContext& context, int id, int slot, std::byte* buffer);

class MessagePieces {
 public:
  /// @param sets    sets of buffers that exchanges use in turn, 1 or more.
  /// @param buffer  returns the address that a message is packed to, or unpacked from, in device memory.
  MessagePieces(const LinkContext& context, int sets,
                const std::function<std::byte*(int set, int slot, int id)>& buffer);
  /// Moves messages whose ids are consecutive, such as the messages of a round and direction, by one launch.
  void move_on(device::Stream& stream, Ids ids, int set, int slot) const;

 private:
  std::size_t index(int set, int slot, int id) const {
    return (static_cast<std::size_t>(set) * slots_ + slot) * messages_ + id;
  }
  device::Device& device_;
  int slots_, messages_;
  std::vector<std::pair<int, int>> ranges_;  // of pieces, by set, slot and id
  device::PieceList pieces_;
};

}  // namespace haloscope
