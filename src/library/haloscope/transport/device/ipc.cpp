// Messages between fields of devices of one machine: the sender's process has mapped the receiver's memory, and its
// kernel packs directly into it; an empty MPI message announces the data.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/set_up_messages.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/transport/device/message_pieces.hpp"
#include "haloscope/transport/twosided/message_link.hpp"

namespace haloscope {
namespace {

using device::Buffer;
using device::Space;

/// Memory of other processes, unmapped by the destructor.
class Mapped {
 public:
  explicit Mapped(device::Device& device) : device_(device) {}
  ~Mapped() {
    for (const auto& [rank, memory] : of_) device_.unmap(memory);
  }
  std::byte* of(int rank, const device::MemoryHandle& handle) {
    auto at = of_.find(rank);
    if (at == of_.end()) at = of_.emplace(rank, device_.map(handle)).first;
    return static_cast<std::byte*>(at->second);
  }

 private:
  device::Device& device_;
  std::map<int, void*> of_;
};

/// A link by mapped memory. Receive buffers come in pairs that exchanges use in turn: a neighbour's message of the
/// next exchange may arrive while the last one is still being unpacked. The message after that cannot: its sender
/// packs it only after it has received this rank's next message, which is packed after that unpacking. (Neighbours
/// always send both ways in a round.)
class IpcLink final : public DeviceLink {
 public:
  explicit IpcLink(const LinkContext& context)
      : device_(*context.device),
        comm_(context.comm),
        tags_(context.tags),
        messages_(context.messages()),
        turns_(messages_, 0),
        mapped_(std::make_unique<Mapped>(device_)) {
    check_reach(context);
    check_both_ways(*context.plan);
    const std::vector<std::int64_t> at = lay_out(*context.plan);
    const std::vector<Target> targets = reached_targets(*context.plan, at);
    pieces_.emplace(context, 2, [&](int half, int, int id) {
      return context.plan->messages[id].out ? targets[id].begin + half * targets[id].half
                                            : buffers_.data() + at[id] + half * half_;
    });
    notices_ = open_placed_messages(context, [](int, int) { return nullptr; });
  }
  /// Collective: first all ranks stop writing to memory that will be freed, then all unmap it.
  ~IpcLink() override {
    notices_.reset();
    require_company(comm_);
    REQUIRE_MPI(MPI_Barrier(comm_));
    mapped_.reset();
    REQUIRE_MPI(MPI_Barrier(comm_));
  }

  void post(Ids in, int slot) override { notices_->post(in, slot); }
  void send(Ids out, int slot) override { notices_->send(out, slot); }
  bool test(Ids in, int slot) override { return notices_->test(in, slot); }
  void wait(Ids in, int slot) override { notices_->wait(in, slot); }
  bool test_complete(Ids out, int slot) override { return notices_->test_complete(out, slot); }
  void complete(Ids out, int slot) override { notices_->complete(out, slot); }
  int waiting_for(Ids in, int slot) const override { return notices_->waiting_for(in, slot); }

  void pack_on(device::Stream& stream, Ids out, int slot) override { move_on(stream, out, slot); }
  void unpack_on(device::Stream& stream, Ids in, int slot) override { move_on(stream, in, slot); }
  void to_host(device::Stream&, Ids, int) override {}
  void to_device(device::Stream&, Ids, int) override {}

 private:
  static void check_reach(const LinkContext& context) {
    const Node& node = node_of(context.comm, context.nodes);
    agree(context.comm, [&] {
      for (const Message& message : context.plan->messages)
        if (node.local(message.peer) < 0)
          throw UnavailableError("transport 'ipc' does not reach from node to node, and rank " +
                                 std::to_string(message.peer) + " is a neighbour on another one; use staged");
    });
  }

  /// Refuses an exchange that fills only one side: it has no messages back, which show that a buffer may be written
  /// again.
  void check_both_ways(const Plan& plan) const {
    std::set<std::pair<int, int>> out, in;  // rounds and peers
    for (const Message& message : plan.messages) (message.out ? out : in).insert({message.round, message.peer});
    agree_here([&] {
      if (out != in)
        throw UsageError("an exchange that sends to a neighbour and receives nothing from it in the same round");
    });
  }

  /// Returns the offsets of received messages in this rank's buffer, by id; -1 for sent ones.
  std::vector<std::int64_t> lay_out(const Plan& plan) {
    std::vector<std::int64_t> at(static_cast<std::size_t>(messages_), -1);
    std::int64_t bytes = 0;
    for (int id = 0; id < messages_; ++id) {
      const Message& message = plan.messages[id];
      if (message.out) continue;
      at[id] = bytes;
      bytes += static_cast<std::int64_t>(whole_lines(message.bytes));
    }
    half_ = bytes;
    buffers_ = Buffer(device_, Space::device, static_cast<std::size_t>(2 * bytes));
    return at;
  }

  /// The place for a message in its receiver's memory: in the first half of its buffer, and the length of that half.
  struct Target {
    std::byte* begin = nullptr;
    std::int64_t half = 0;
  };
  /// Maps the memory of receivers. Where some rank's memory cannot be mapped, no rank frees memory that another one
  /// still maps.
  std::vector<Target> reached_targets(const Plan& plan, const std::vector<std::int64_t>& at) try {
    return exchange_targets(plan, at);
  } catch (const MpiError&) {
    throw;
  } catch (const Error&) {  // the same on all ranks
    mapped_.reset();
    CHECK_MPI(MPI_Barrier(comm_));
    throw;
  }
  /// Returns the replies of receivers to their senders, by id of the sent messages. Collective.
  std::vector<Target> exchange_targets(const Plan& plan, const std::vector<std::int64_t>& at) {
    struct Place {
      device::MemoryHandle memory;
      std::int64_t offset = 0, half = 0;
    };
    device::MemoryHandle handle;
    agree_here([&] {
      if (buffers_.size() > 0) handle = device_.share(buffers_.data());
    });
    SetUpMessages<Place> places(static_cast<std::size_t>(messages_));
    for (int id = 0; id < messages_; ++id) {
      const Message& m = plan.messages[id];
      const int tag = tags_.opening(m.tag);
      m.out ? places.receive(id, m.peer, tag, comm_) : places.send(id, {handle, at[id], half_}, m.peer, tag, comm_);
    }
    places.complete();
    std::vector<Target> targets(static_cast<std::size_t>(messages_));
    agree_here([&] {
      for (int id = 0; id < messages_; ++id)
        if (const Message& m = plan.messages[id]; m.out)
          targets[id] = {mapped_->of(m.peer, places[id].memory) + places[id].offset, places[id].half};
    });
    return targets;
  }

  /// Runs local work. Where it fails on one rank, all refuse the transport. Collective.
  template <class Work>
  void agree_here(const Work& work) const {
    agree(comm_, [&] {
      try {
        work();
      } catch (const Error& error) {
        throw UnavailableError(std::string("transport 'ipc' cannot be used here: ") + error.what() + "; use staged");
      }
    });
  }

  /// Uses the turn of the first message: all messages of a set have had equally many turns.
  void move_on(device::Stream& stream, Ids ids, int slot) {
    if (ids.empty()) return;
    const int half = turns_[ids.front()] % 2;
    for (int id : ids) ++turns_[id];
    pieces_->move_on(stream, ids, half, slot);
  }

  device::Device& device_;
  MPI_Comm comm_;
  MessageTags tags_;
  int messages_;
  std::int64_t half_ = 0;   // bytes of one of the two halves of this rank's buffer
  std::vector<int> turns_;  // exchanges that each message has been in
  Buffer buffers_;
  std::unique_ptr<Mapped> mapped_;
  std::optional<MessagePieces> pieces_;
  std::unique_ptr<Link> notices_;
};

}  // namespace

std::unique_ptr<Link> open_ipc(const LinkContext& context, const std::vector<std::string>&) {
  return std::make_unique<IpcLink>(context);
}

}  // namespace haloscope
