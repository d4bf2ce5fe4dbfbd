// The flag protocol of shared memory, without MPI: two counters per one-way message, each written by one side only.
//
// The receiver's counter is a grant ("my halo is free", "I have read"), the sender's an announcement ("the bytes are
// there"). Raising a counter is a release after the raiser's loads and stores; reading it is an acquire before the
// reader's loads and stores. The data between them is plain memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "haloscope/core/spin.hpp"

namespace haloscope {

/// A counter in memory that several processes map: must need no lock and no helper outside that memory.
using Flag = std::atomic<std::uint64_t>;
static_assert(Flag::is_always_lock_free);

/// Flags written by different ranks are this many bytes apart: two cache lines, since lines are fetched in pairs.
constexpr std::size_t flags_apart = 128;

/// One end of a message: the flag that the other end raises and the one that this end raises.
class FlagEnd {
 public:
  FlagEnd() = default;
  FlagEnd(const Flag* theirs, Flag* mine) : theirs_(theirs), mine_(mine) {}

  /// Returns true if the other end has raised its flag to `count` or more; then everything it did before is visible
  /// here.
  bool reached(std::uint64_t count) const { return theirs_->load(std::memory_order_acquire) >= count; }
  /// Raises the flag: everything this end did before is visible to the other end once it reads `count`.
  void raise(std::uint64_t count) { mine_->store(count, std::memory_order_release); }

 private:
  const Flag* theirs_ = nullptr;
  Flag* mine_ = nullptr;
};

/// The end that sends message after message. Protocols by the meaning of a grant:
///  push    grant n = "the halo may take message n"; the sender stores into it, then announces n
///  pull    announcement n = "message n may be read"; grant n = "message n has been read"
///  packed  two buffers in turn: announcement n = "message n is in its buffer"; grant n = "its buffer has been emptied"
class FlagSender : public FlagEnd {
 public:
  using FlagEnd::FlagEnd;
  bool may_push(std::uint64_t n) const { return reached(n); }
  bool was_read(std::uint64_t n) const { return reached(n); }
  /// Returns true if message n + 1 may be packed; called once message n has been sent.
  bool may_pack_after(std::uint64_t n) const { return n == 0 || reached(n - 1); }
  void announce(std::uint64_t n) { raise(n); }
};

class FlagReceiver : public FlagEnd {
 public:
  using FlagEnd::FlagEnd;
  bool arrived(std::uint64_t n) const { return reached(n); }
  void grant(std::uint64_t n) { raise(n); }
};

/// Returns the buffer, of two, that packed message number n (from 1) lies in.
inline int buffer_of(std::uint64_t n) { return static_cast<int>(n & 1); }

}  // namespace haloscope
