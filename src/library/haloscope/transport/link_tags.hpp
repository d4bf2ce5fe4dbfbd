// The message tags of one link, reserved on the communicator that it shares with others.
#pragma once

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/error.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

/// Returns true if all ranks agreed that an opening failed, so that no messages of it are in flight.
inline bool is_agreed(const Error& error) {
  return dynamic_cast<const UnavailableError*>(&error) != nullptr || dynamic_cast<const UsageError*>(&error) != nullptr;
}

/// Tags that no other link on a communicator has until this object ends; the only way to get tags. Move-only.
class LinkTags {
 public:
  /// Collective. Cost: as LibraryComm::reserve_tags(), and one more reduction to all where there are several slots.
  /// @throws Error on all ranks where no tags are left.
  LinkTags(LibraryComm& on, const Plan& plan, int slots);

  const MessageTags& tags() const { return tags_; }
  /// Opens the link by work(), including everything made for it, on all ranks. Where MPI refuses a call, or memory is
  /// exhausted, messages of the opening may be in flight, so that no link gets these tags any more.
  template <class Work>
  void open(Work work) {
    try {
      work();
    } catch (const Error& error) {
      if (!is_agreed(error)) retire();
      throw;
    } catch (...) {
      retire();
      throw;
    }
  }
  /// Retires the tags, so that no link gets them any more: messages with them may be in flight.
  void retire() { range_.retire(); }

 private:
  LinkTags(LibraryComm& on, int messages, int slots);

  TagRange range_;
  MessageTags tags_;
};

}  // namespace haloscope
