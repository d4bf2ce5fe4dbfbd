// Messages between ranks of one node by loads and stores: the places of both ends of each message, and the waits of
// one end for the other.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/pack/block_copy.hpp"
#include "haloscope/transport/shared/flags.hpp"

namespace haloscope {

/// The movement of bytes, and the synchronisation of ranks.
enum class SharedMode {
  push,    ///< the sender stores into the neighbour's halos; flags
  pull,    ///< the receiver loads from the neighbour's field; flags
  packed,  ///< the sender packs into the neighbour's buffer; flags; fields may be private
  fence    ///< direct, but MPI_Win_fence instead of flags: every rank of the node in every round
};

class SharedLink : public Link {
 public:
  /// Collective over `context.comm`.
  /// @throws on all ranks: UsageError if a mode needs the fields in shared memory and they are not, or views do not
  ///         fit the plan; UnavailableError for a message to another node; Error where shared memory is exhausted.
  SharedLink(const LinkContext& context, SharedMode mode);
  ~SharedLink() override;

  void post(Ids in, int slot) override;
  void pack(Ids out, int slot, Share share) override;
  void send(Ids out, int slot) override;
  bool test(Ids in, int slot) override;
  void wait(Ids in, int slot) override;
  void unpack(Ids in, int slot, Share share) override;
  std::int64_t packing_lines(Ids ids, int slot) const override;
  bool test_complete(Ids out, int slot) override;
  void complete(Ids out, int slot) override;
  int waiting_for(Ids in, int slot) const override;

  Blocks blocks() const override { return mode_ == SharedMode::fence ? Blocks::always : Blocks::never; }
  bool arrives_in_wait() const override { return mode_ == SharedMode::fence; }
  /// A neighbour that has been granted the halos may store into them at any later time.
  bool must_be_awaited() const override { return mode_ == SharedMode::push || Link::must_be_awaited(); }
  /// True unless flags and buffers have a separate window, which all ranks free together.
  bool closes_alone() const override { return closes_alone_; }
  /// Neighbours hold the addresses of fields that they access.
  bool follows() const override { return mode_ == SharedMode::packed; }
  void follow(int slot, SlotOffsets moved) override;

  /// False while a started message has not been stored because the neighbour's halo is not free yet.
  bool all_sent();

 protected:
  /// One message in one slot.
  struct Port {
    int peer = 0;
    bool out = false;
    FlagSender sender;      ///< out
    FlagReceiver receiver;  ///< in
    CopyList copies[2];     ///< copies of this end; packed: by buffer, else the first
    /// The number of messages posted or sent (fence: the number of fences before them). A watchdog on another thread
    /// may read it.
    std::atomic<std::uint64_t> count = 0;
    std::atomic<bool> pending = false;  ///< push: not yet stored
    std::atomic<int> shares = 0;        ///< of the unpacking, done so far
    bool open = false;                  ///< posted, not yet unpacked
  };
  Port& port(int id, int slot) { return ports_[static_cast<std::size_t>(slot) * messages_ + id]; }
  const Port& port(int id, int slot) const { return ports_[static_cast<std::size_t>(slot) * messages_ + id]; }

 private:
  struct ControlMap;
  struct Peers;
  void connect(const LinkContext& context, const Node& node, const ControlMap& map, const Peers& peers);
  void finish();
  std::uint64_t next(Port& port);
  void push(Port& port);
  void fence();
  bool settled(const Port& port) const;
  bool all_settled(Ids ids, int slot) const;

  SharedMode mode_;
  bool yield_;
  int messages_, slots_;
  Memory control_;  // flags, and buffers of packed messages
  bool closes_alone_ = false;
  std::unique_ptr<Port[]> ports_;
  std::vector<Port*> pending_;             // pushes that wait for a grant; room for all
  std::vector<MPI_Win> windows_;           // fence: windows of the fields
  int unfenced_ = 0;                       // fence: sends without their wait
  std::atomic<std::uint64_t> fences_ = 2;  // two more than were made: a message never started counts as over
};

}  // namespace haloscope
