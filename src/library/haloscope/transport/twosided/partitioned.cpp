// Partitioned messages (MPI 4): each message is one buffer of equal partitions, one per thread of the team. A thread
// packs its share of every region into its partition and makes it ready immediately, while others still pack.
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/text.hpp"
#include "haloscope/comm/together.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/transport/open_locally.hpp"

namespace haloscope {
namespace {

#if HALOSCOPE_HAVE_PARTITIONED

/// Returns the regions of one share of a message. Both ends cut equally, since a region's box has the same extents at
/// both.
Message part_of(const Message& message, Share share, const Plan& plan) {
  Message part = message;
  part.regions.clear();
  part.bytes = 0;
  for (const Region& region : message.regions) {
    const Box box = haloscope::part_of(region.box, share);
    if (box.empty()) continue;
    part.regions.push_back({region.quantity, box});
    part.bytes += box.volume() * plan.spec.quantities[region.quantity].element_bytes;
  }
  return part;
}

class PartitionedLink final : public Link {
 public:
  /// @param partitions  number of partitions of each message, equal on all ranks.
  /// @param late  the control thread makes all partitions ready, in send().
  PartitionedLink(const LinkContext& context, int partitions, bool late)
      : partitions_(partitions),
        late_(late),
        yield_(context.yield),
        messages_(context.plan->messages.size()),
        ports_(context.views->front().size() * messages_) {
    for (int slot = 0; slot < context.slots(); ++slot)
      for (int id = 0; id < context.messages(); ++id)
        if (context.moves(id)) prepare(context, id, slot);
  }
  ~PartitionedLink() override {
    for (Port& p : ports_) settle(p);
  }
  bool closes_alone() const override { return true; }

  void post(Ids in, int slot) override {
    for (int id : in) start(port(id, slot));
  }
  void pack(Ids out, int slot, Share share) override {
    for (int id : out) {
      Port& p = port(id, slot);
      if (!late_) start(p);
      each_partition(share, [&](int partition) {
        p.packing[partition].run();
        if (!late_) REQUIRE_MPI(MPI_Pready(partition, p.request.get()));
      });
    }
  }
  void send(Ids out, int slot) override {
    for (int id : out) {
      Port& p = port(id, slot);
      if (!late_) continue;
      start(p);
      REQUIRE_MPI(MPI_Pready_range(0, partitions_ - 1, p.request.get()));
    }
  }
  bool test(Ids in, int slot) override {
    return std::all_of(in.begin(), in.end(), [&](int id) { return test_port(port(id, slot)); });
  }
  void wait(Ids in, int slot) override {
    for (int id : in) settle(port(id, slot));
  }
  void unpack(Ids in, int slot, Share share) override {
    for (int id : in) {
      const Port& p = port(id, slot);
      each_partition(share, [&](int partition) { p.packing[partition].run(); });
    }
  }
  std::int64_t packing_lines(Ids ids, int slot) const override {
    std::int64_t lines = 0;
    for (int id : ids)
      for (const CopyList& list : port(id, slot).packing) lines += list.lines();
    return lines;
  }
  bool test_complete(Ids out, int slot) override { return test(out, slot); }
  void complete(Ids out, int slot) override { wait(out, slot); }
  int waiting_for(Ids in, int slot) const override {
    for (int id : in)
      if (const Port& p = port(id, slot); p.state.load(std::memory_order_relaxed) != State::idle) return p.peer;
    return -1;
  }

 private:
  enum class State { idle, starting, started };
  /// One message in one slot.
  struct Port {
    int peer = 0;
    OwnedRequest request;
    std::vector<CopyList> packing;  // by partition: gathers (out) or scatters (in)
    std::atomic<State> state = State::idle;
  };

  Port& port(int id, int slot) { return ports_[slot * messages_ + id]; }
  const Port& port(int id, int slot) const { return ports_[slot * messages_ + id]; }

  /// Lays the message out, partition after partition, each with room for the largest and whole cache lines long.
  void prepare(const LinkContext& context, int id, int slot) {
    const Message& message = context.plan->messages[id];
    Port& p = port(id, slot);
    p.peer = message.peer;
    std::vector<Message> parts;
    std::int64_t room = 0;
    for (int i = 0; i < partitions_; ++i) {
      parts.push_back(part_of(message, {i, partitions_}, *context.plan));
      room = std::max(room, static_cast<std::int64_t>(whole_lines(parts.back().bytes)));
    }
    std::byte* at = buffers_.emplace_back(static_cast<std::size_t>(room * partitions_)).data();
    const int peer = message.peer, tag = context.tags.of(message.tag, 0, slot);
    if (message.out)
      CHECK_MPI(
          MPI_Psend_init(at, partitions_, room, MPI_BYTE, peer, tag, context.comm, MPI_INFO_NULL, p.request.address()));
    else
      CHECK_MPI(
          MPI_Precv_init(at, partitions_, room, MPI_BYTE, peer, tag, context.comm, MPI_INFO_NULL, p.request.address()));
    for (const Message& part : parts) {
      p.packing.push_back(make_packing(*context.views, slot, part, at));
      at += room;
    }
  }

  /// Starts the requests once per exchange, on the first thread to come; the others wait until it is done.
  static void start(Port& p) {
    State expected = State::idle;
    if (p.state.compare_exchange_strong(expected, State::starting, std::memory_order_acq_rel)) {
      REQUIRE_MPI(MPI_Start(p.request.address()));
      p.state.store(State::started, std::memory_order_release);
    }
    while (p.state.load(std::memory_order_acquire) == State::starting) sched_yield();
  }

  template <class F>
  void each_partition(Share share, F f) const {
    const auto end = share_end(partitions_, share);
    for (auto partition = share_begin(partitions_, share); partition < end; ++partition) f(static_cast<int>(partition));
  }

  static bool test_port(Port& p) {
    if (p.state.load(std::memory_order_relaxed) == State::idle) return true;
    int done = 0;
    REQUIRE_MPI(MPI_Test(p.request.address(), &done, MPI_STATUS_IGNORE));
    if (done) p.state.store(State::idle, std::memory_order_relaxed);
    return done;
  }
  void settle(Port& p) const {
    Spin spin(yield_);
    while (!test_port(p)) spin.again();
  }

  int partitions_;
  bool late_, yield_;
  std::size_t messages_ = 0;
  std::vector<Memory> buffers_;
  std::vector<Port> ports_;  // never resized: [slot][message id]
};

/// Waits until Open MPI has duplicated MPI_COMM_WORLD, as it does for a program's first partitioned message: a
/// message that a rank sends to itself arrives only after that. The duplicate is made by nonblocking collective calls
/// that each rank starts when it first polls. Without the wait, their order relative to other nonblocking collective
/// calls on MPI_COMM_WORLD, of the library or the program, would differ between ranks, which would hang or give wrong
/// data.
/// @throws UnavailableError where `comm` lacks ranks of MPI_COMM_WORLD: the duplicate needs all of them.
void duplicate_world_first(MPI_Comm comm) {
  static std::atomic<bool> duplicated = false;
  if (duplicated || open_mpi_version() == 0) return;
  if (ranks_in(comm) != ranks_in(MPI_COMM_WORLD))
    throw UnavailableError("transport partitioned: " + mpi_library() + " sets partitioned messages up on all " +
                           std::to_string(ranks_in(MPI_COMM_WORLD)) +
                           " ranks of MPI_COMM_WORLD together, and this communicator has " +
                           std::to_string(ranks_in(comm)) + "; use p2p or persistent");
  static char sent, received;  // the calls may be in flight when this ends
  OwnedRequest in, out;
  CHECK_MPI(MPI_Precv_init(&received, 1, 1, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, in.address()));
  CHECK_MPI(MPI_Psend_init(&sent, 1, 1, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, out.address()));
  for (OwnedRequest* request : {&in, &out}) CHECK_MPI(MPI_Start(request->address()));
  CHECK_MPI(MPI_Pready(0, out.get()));
  for (OwnedRequest* request : {&in, &out}) meet_in(*request->address());
  duplicated = true;
}

/// Returns true if only one thread may call MPI; threads may make partitions ready themselves only where all of them
/// may.
bool only_one_thread_calls(const LinkContext& context) {
  int level = 0;
  CHECK_MPI(MPI_Query_thread(&level));
  return level < MPI_THREAD_MULTIPLE && context.threads > 1;
}

#endif

}  // namespace

std::unique_ptr<Link> open_partitioned([[maybe_unused]] const LinkContext& context,
                                       [[maybe_unused]] const std::vector<std::string>& words) {
#if HALOSCOPE_HAVE_PARTITIONED
  duplicate_world_first(context.comm);
  std::array<int, 1> partitions{std::max(1, context.threads)};
  reduce_together(context.comm, partitions, MPI_INT, MPI_MAX);
  return open_locally<PartitionedLink>(context, partitions[0], !words.empty() || only_one_thread_calls(context));
#else
  throw UnavailableError(
      "transport partitioned needs MPI_Psend_init, which this MPI lacks; use p2p or persistent, or "
      "build with an MPI 4 library such as MPICH 4 or Open MPI 5");
#endif
}

}  // namespace haloscope
