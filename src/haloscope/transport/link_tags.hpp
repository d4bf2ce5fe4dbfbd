// The message tags of one link, reserved on the communicator that it shares with others.
#pragma once

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/error.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

/// Whether ranks agreed that something cannot be opened, so that no messages of it are under way.
inline bool is_agreed(const Error& error) {
  return dynamic_cast<const UnavailableError*>(&error) != nullptr || dynamic_cast<const UsageError*>(&error) != nullptr;
}

/// Tags that no other link on a communicator has until this object ends, and the only way to get some. Move-only.
class LinkTags {
 public:
  /// Collective. Cost: as LibraryComm::reserve_tags(), and one more reduction to all where there are several slots.
  /// @throws Error on all ranks where no tags are left.
  LinkTags(LibraryComm& on, const Plan& plan, int slots);

  const MessageTags& tags() const { return tags_; }
  /// Opens the link by work(), with all that is made for it: ranks must do alike here. Where MPI refuses a call, or
  /// memory is exhausted, messages of the opening may be under way, so that no link gets these tags any more.
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
  /// No link gets these tags any more: messages with them may be under way.
  void retire() { range_.retire(); }

 private:
  LinkTags(LibraryComm& on, int messages, int slots);

  TagRange range_;
  MessageTags tags_;
};

}  // namespace haloscope
