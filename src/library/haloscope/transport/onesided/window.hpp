// Common parts of the one-sided transports: memory that MPI allocates for a window, places of messages in it, hints,
// and packing. The end that starts a transfer is its origin (the sender puts, the receiver gets), the other its
// target. Only the target's packed segment lies in a window; the origin uses a private buffer, or works in place on
// the field.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/comm/handles.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/pack/block_copy.hpp"
#include "haloscope/transport/twosided/datatype.hpp"

namespace haloscope {

/// Option words of the family.
struct RmaOptions {
  bool get = false;          ///< the receiver fetches; otherwise the sender puts
  bool per_message = false;  ///< a window per message instead of one for all
  bool split = false;        ///< fence: one window per rank and its peers, so that fences are local
  bool flag = false;         ///< locks: readiness by flags in the waiter's memory instead of empty messages
  bool barrier = false;      ///< locks: barriers of all ranks around the gets of a round instead of signals
  bool rget = false;         ///< lock_all: gets with a request, completed one by one
  bool plain = false;        ///< no info keys, no assertions
  bool separate = false;     ///< locks: precautions of the separate memory model even if MPI reports the unified one

  static RmaOptions parse(const std::vector<std::string>& words);
};

/// Info keys. Every key must be true: MPI may rely on it.
using Hints = std::vector<std::pair<const char*, const char*>>;

/// A window over memory that MPI allocates. Freed collectively, with its communicator if it owns one. Move-only.
class Window {
 public:
  /// Collective over `comm`. @param own the same communicator where the window owns it, else none.
  Window(MPI_Comm comm, OwnedComm own, std::size_t bytes, const Hints& hints);
  ~Window();
  Window(Window&& other) noexcept;
  Window& operator=(Window&&) = delete;

  MPI_Win handle() const { return handle_; }
  MPI_Comm comm() const { return comm_; }
  int rank_of(MPI_Comm comm, int rank) const;  ///< in this window's communicator, of `rank` of `comm`
  std::byte* data() const { return data_; }
  /// Opens an epoch to all ranks, which ends with the window unless unlock_all() has ended it before.
  void lock_all(int assertion) const;
  void unlock_all() const;

 private:
  /// Makes an object without a window, so that a later exception runs the destructor, which frees existing resources.
  Window(MPI_Comm comm, OwnedComm own) : comm_(comm), own_(std::move(own)) {}

  MPI_Comm comm_;
  OwnedComm own_;
  std::byte* data_ = nullptr;
  MPI_Win handle_ = MPI_WIN_NULL;
  mutable bool locked_ = false;
};

/// One exchange at a time: a message's segment serves all slots.
class WindowLink : public Link {
 public:
  void pack(Ids out, int slot, Share share) override;
  void unpack(Ids in, int slot, Share share) override;
  std::int64_t packing_lines(Ids ids, int slot) const override;
  int waiting_for(Ids in, int slot) const override;
  std::string report() const override;

 protected:
  /// One end of a message.
  struct Port {
    int peer = 0, tag = 0, round = 0;
    bool out = false, origin = false;
    std::int64_t bytes = 0;
    MessageType type;
    std::vector<std::byte*> data;       ///< per slot: field memory (in place), a buffer, or the segment in the window
    std::vector<CopyList> packing;      ///< per slot: gathers (out) or scatters (in); empty in place
    int window = 0;                     ///< the window the transfer goes through
    int target = 0;                     ///< origin: the peer's rank in it
    MPI_Aint at = 0;                    ///< offset in the target's memory
    int slot = 0;                       ///< of the exchange in progress
    std::atomic<bool> pending = false;  ///< started, not yet finished; a watchdog on another thread may read it
  };
  /// A window to be made: its communicator, and the messages (ids) whose segments this rank exposes in it.
  struct Exposed {
    MPI_Comm comm = MPI_COMM_NULL;
    OwnedComm own = {};  // the same communicator where it is made for the window
    std::vector<int> ids = {};
  };

  /// @throws UsageError when the views do not fit the plan.
  WindowLink(const LinkContext& context, const RmaOptions& options);

  /// Makes the windows, then sends the place of its segment to the origin of each message. Collective over comm().
  /// All ranks pass the same number of windows or, with `own` >= 0, different windows in an order that cannot
  /// deadlock; all transfers of this rank then go through window number `own`.
  void make_windows(std::vector<Exposed> exposed, Hints hints, int own = -1);
  /// Makes `count` windows over comm(), by the largest `count` of any rank; message id goes to window `place(id)`.
  template <class Place>
  void make_common_windows(int count, const Hints& hints, Place place);
  /// Makes a window per message. No rank exposes two messages in one of them, or accesses two: MPICH 5.0.2 counts
  /// announced exposures instead of distinguishing their owners, so MPI_Win_start for one of two would hang.
  void make_message_windows(const Hints& hints);
  /// Returns the number of each message among the messages that this rank exposes in the same round.
  std::vector<int> numbers_in_round() const;

  void start(Port& port, int slot);
  /// Puts or gets; the synchronisation completes it. Uses `request` if it is not null (gets only).
  void transfer(Port& port, MPI_Request* request = nullptr);
  /// Waits for everything in flight. Derived classes call it first in their destructors.
  void finish();

  Port& port(int id) { return ports_[id]; }
  const Port& port(int id) const { return ports_[id]; }
  int messages() const { return messages_; }
  int slots() const { return slots_; }
  bool moves(int id) const { return ports_[id].bytes > 0; }
  const std::vector<Window>& windows() const { return windows_; }
  MPI_Comm comm() const { return context_.comm; }
  const MessageTags& tags() const { return context_.tags; }
  int rank() const { return rank_; }
  bool yield() const { return context_.yield; }
  const RmaOptions& options() const { return options_; }
  /// Returns the assertion of a synchronisation call; none with option `plain`.
  int assertion(int modes) const { return options_.plain ? 0 : modes; }
  /// Returns true if remote updates of window memory reach local loads without further calls.
  bool unified() const { return unified_; }

 private:
  std::size_t bytes_of(const Exposed& exposed) const;
  void place_origins();
  void place_segments();
  void await_turn() const;
  void end_turn() const;
  void send_places(int own);

  LinkContext context_;  // its plan, layout and views only while the link is being opened
  RmaOptions options_;
  bool unified_ = true, all_unified_ = true;
  int rank_, messages_, slots_;
  Memory buffers_;
  std::unique_ptr<Port[]> ports_;
  std::vector<Window> windows_;
};

template <class Place>
void WindowLink::make_common_windows(int count, const Hints& hints, Place place) {
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT, MPI_MAX, comm()));
  std::vector<Exposed> exposed(static_cast<std::size_t>(count));
  for (Exposed& one : exposed) one.comm = comm();
  for (int id = 0; id < messages_; ++id)
    if (moves(id) && !ports_[id].origin) exposed[static_cast<std::size_t>(place(id))].ids.push_back(id);
  make_windows(std::move(exposed), hints);
}

}  // namespace haloscope
