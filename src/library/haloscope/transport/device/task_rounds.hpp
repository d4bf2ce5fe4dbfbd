// Data of kernels that move a round's messages: parts of messages, launches, and the words between kernel and CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/device/task_link.hpp"
#include "haloscope/transport/twosided/datatype.hpp"

namespace haloscope {

/// A part of a message, which is sent separately.
struct TaskPart {
  int id = 0, peer = 0, tag = 0;
  std::byte* host = nullptr;          ///< memory that MPI sends from, or receives into
  const std::byte* packed = nullptr;  ///< in device memory, to be copied to `host`; null: packed into `host`
  std::int64_t bytes = 0;
  MessageType type;
};

/// The messages of one round and slot in one direction.
struct TaskSide {
  std::vector<int> ids;
  std::vector<TaskPart> parts;  ///< in the order of `ids`
};

/// One round in one slot. `launch` lacks only the exchange's number. `unpack` unpacks all messages that it receives.
struct TaskRound {
  TaskSide out, in;
  device::ExchangeLaunch launch;
  device::CopyLaunch unpack;
};

/// All rounds in all slots, with their memory. Allocates nothing after construction.
class TaskRounds {
 public:
  /// @param blocks  maximum blocks of a kernel.
  TaskRounds(const LinkContext& context, const TaskOptions& options, int blocks);
  std::vector<TaskRound>& all() { return rounds_; }
  TaskRound& of(int round, int slot) { return rounds_[static_cast<std::size_t>(slot) * rounds_of_slot_ + round]; }
  /// Makes every kernel leave at its next check.
  void stop();

 private:
  struct Lists {  // of all rounds, to be copied to device memory
    std::vector<device::CopyLaunch::Piece> pieces;
    std::vector<device::ExchangeLaunch::Part> parts;
  };
  void place_messages(const LinkContext& context);
  void add_message(const LinkContext& context, int slot, int id, Lists& lists);
  void launch_with(const Lists& lists, int blocks);

  device::Device& device_;
  TaskOptions options_;
  std::size_t rounds_of_slot_, messages_;
  std::vector<TaskRound> rounds_;
  std::vector<std::size_t> begins_;  // of messages in their memory, by slot and id
  device::Buffer host_, packed_, pieces_, parts_, counters_, relayed_, words_;
};

}  // namespace haloscope
