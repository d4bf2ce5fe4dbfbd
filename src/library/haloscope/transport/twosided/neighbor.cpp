// Neighbourhood collectives: all messages of a round are one MPI_Neighbor_alltoallw on a distributed graph. The graph
// has one edge per pair of ranks. Where a rank is both neighbours of another, as in periodic dimensions of two ranks,
// several edges would leave the matching of messages to the library, and several libraries get it wrong.
#include <algorithm>
#include <atomic>
#include <map>

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/transport.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/transport/twosided/datatype.hpp"

namespace haloscope {
namespace {

enum class Form { nonblocking, blocking, persistent };

struct NeighborOptions {
  Form form = Form::nonblocking;
  bool packed = false;
};

/// All messages in one direction of transfer between this rank and others in one round, as arguments of alltoallw:
/// one entry per peer, in which the messages are joined by tag at both ends.
struct Side {
  std::map<int, std::vector<int>> ids;  ///< by peer, in order of tags
  void* data = MPI_BOTTOM;
  std::vector<MessageType> owned;
  std::vector<int> counts;
  std::vector<MPI_Aint> offsets;
  std::vector<MPI_Datatype> types;

  Side(const LinkContext& context, int round, bool out) {
    const auto& messages = context.plan->messages;
    for (int id = 0; id < static_cast<int>(messages.size()); ++id)
      if (messages[id].round == round && messages[id].out == out && context.moves(id))
        ids[messages[id].peer].push_back(id);
    for (auto& [peer, list] : ids)
      std::sort(list.begin(), list.end(), [&](int a, int b) { return messages[a].tag < messages[b].tag; });
  }
  void add(MessageType type, MPI_Aint offset) {
    counts.push_back(type.count());
    types.push_back(type.type());
    offsets.push_back(offset);
    owned.push_back(std::move(type));
  }
  std::vector<int> peers() const {
    std::vector<int> list;
    for (const auto& [peer, messages] : ids) list.push_back(peer);
    return list;
  }
};

/// One round of one slot.
struct Round {
  Side in, out;
  OwnedComm graph;  ///< of the ranks that have a message in this round; null on all others
  OwnedRequest request;
  std::atomic<bool> pending = false;  ///< begun, not yet finished; a watchdog on another thread may read it

  Round(const LinkContext& context, int round) : in(context, round, false), out(context, round, true) {}
};

/// Makes the graph of a round. Collective over `comm`. Only ranks with a message take part in it, so that no other
/// rank has to keep step with them. Each slot has a separate graph, so that exchanges of several slots may begin and
/// end in any order.
OwnedComm make_graph(MPI_Comm comm, const Side& in, const Side& out) {
  BriefComm members;
  OwnedComm graph;
  const int colour = in.ids.empty() && out.ids.empty() ? MPI_UNDEFINED : 0;
  CHECK_MPI(MPI_Comm_split(comm, colour, rank_in(comm), members.address()));
  if (!members) return graph;
  const OwnedGroup all = group_of(comm), some = group_of(members.get());
  const auto from = ranks_in(some, all, in.peers()), to = ranks_in(some, all, out.peers());
  CHECK_MPI(MPI_Dist_graph_create_adjacent(members.get(), static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                                           static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                           graph.address()));
  return graph;
}

class NeighborLink final : public Link {
 public:
  NeighborLink(const LinkContext& context, const NeighborOptions& options) : options_(options), yield_(context.yield) {
    for (const Message& m : context.plan->messages) where_.push_back({m.round, m.peer});
    rounds_per_slot_ = context.plan->rounds;
    agree(context.comm, [&] { place(context); });  // a region may be too large on one rank
    for (auto& r : rounds_) {
      r->graph = make_graph(context.comm, r->in, r->out);
      if (options.form == Form::persistent) prepare(*r);
    }
  }
  ~NeighborLink() override {
    for (auto& r : rounds_) finish(*r);
  }

  /// Begins a round in which this rank only receives; any other round begins with the sends.
  void post(Ids in, int slot) override {
    each_round(in, slot, [this](Round& r) {
      if (r.out.ids.empty()) begin(r);
    });
  }
  void pack(Ids out, int slot, Share share) override { run_lists(out, slot, share); }
  void send(Ids out, int slot) override {
    each_round(out, slot, [this](Round& r) { begin(r); });
  }
  bool test(Ids in, int slot) override {
    bool all = true;
    each_round(in, slot, [&](Round& r) { all &= test_round(r); });
    return all;
  }
  void wait(Ids in, int slot) override {
    each_round(in, slot, [this](Round& r) { finish(r); });
  }
  void unpack(Ids in, int slot, Share share) override { run_lists(in, slot, share); }
  std::int64_t packing_lines(Ids ids, int slot) const override {
    std::int64_t lines = 0;
    for (int id : ids) lines += list(id, slot).lines();
    return lines;
  }
  bool test_complete(Ids out, int slot) override { return test(out, slot); }
  void complete(Ids out, int slot) override { wait(out, slot); }
  Blocks blocks() const override { return options_.form == Form::blocking ? Blocks::always : Blocks::never; }
  bool arrives_in_wait() const override { return options_.form == Form::blocking; }
  bool must_be_awaited() const override { return true; }  // collective calls cannot be cancelled
  /// Returns the first peer of a round that is not complete; the library does not report the late peer.
  int waiting_for(Ids in, int slot) const override {
    for (int id : in)
      if (round(id, slot).pending.load(std::memory_order_relaxed)) return where_[id].peer;
    return -1;
  }

 private:
  struct Where {
    int round, peer;
  };
  Round& round(int id, int slot) const { return *rounds_[slot * rounds_per_slot_ + where_[id].round]; }
  const CopyList& list(int id, int slot) const { return packing_[slot * where_.size() + id]; }

  /// Calls `f` for each round that has some of these messages, once: they are sorted by round, like the plan's.
  template <class F>
  void each_round(Ids ids, int slot, F f) const {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (i == 0 || where_[ids[i]].round != where_[ids[i - 1]].round) f(round(ids[i], slot));
  }

  /// Sets the places of all messages. Local.
  void place(const LinkContext& context) {
    packing_.resize(context.slots() * where_.size());
    for (int slot = 0; slot < context.slots(); ++slot)
      for (int round = 0; round < rounds_per_slot_; ++round) {
        Round& r = *rounds_.emplace_back(std::make_unique<Round>(context, round));
        for (Side* side : {&r.in, &r.out})
          options_.packed ? place_buffer(context, *side, slot) : describe(context, *side, slot);
      }
  }

  /// Describes messages directly in field memory.
  static void describe(const LinkContext& context, Side& side, int slot) {
    for (const auto& [peer, ids] : side.ids) {
      Message joined;
      for (int id : ids) {
        const auto& regions = context.plan->messages[id].regions;
        joined.regions.insert(joined.regions.end(), regions.begin(), regions.end());
      }
      side.add(region_type(*context.views, slot, *context.plan, joined), 0);
    }
  }

  /// Places messages in one buffer, peer after peer.
  void place_buffer(const LinkContext& context, Side& side, int slot) {
    std::int64_t total = 0;
    for (const auto& [peer, ids] : side.ids) {
      std::int64_t bytes = 0;
      for (int id : ids) bytes += context.plan->messages[id].bytes;
      side.add(byte_type(bytes), total);
      total += static_cast<std::int64_t>(whole_lines(bytes));
    }
    Memory& buffer = buffers_.emplace_back(static_cast<std::size_t>(total));
    side.data = buffer.data();
    std::size_t entry = 0;
    for (const auto& [peer, ids] : side.ids) {
      std::byte* at = buffer.data() + side.offsets[entry++];
      for (int id : ids) {
        const Message& m = context.plan->messages[id];
        packing_[slot * where_.size() + id] = make_packing(*context.views, slot, m, at);
        at += m.bytes;
      }
    }
  }

  static void prepare([[maybe_unused]] Round& r) {
#if HALOSCOPE_HAVE_NEIGHBOR_INIT
    if (r.graph)
      CHECK_MPI(MPI_Neighbor_alltoallw_init(r.out.data, r.out.counts.data(), r.out.offsets.data(), r.out.types.data(),
                                            r.in.data, r.in.counts.data(), r.in.offsets.data(), r.in.types.data(),
                                            r.graph.get(), MPI_INFO_NULL, r.request.address()));
#endif
  }

  /// Begins a round. The blocking call is made in the wait, so that work can be done before. A rank that only sends
  /// never waits, and must not delay its receivers.
  void begin(Round& r) {
    r.pending.store(true, std::memory_order_relaxed);
    if (options_.form == Form::persistent) REQUIRE_MPI(MPI_Start(r.request.address()));
    if (options_.form == Form::nonblocking)
      REQUIRE_MPI(MPI_Ineighbor_alltoallw(r.out.data, r.out.counts.data(), r.out.offsets.data(), r.out.types.data(),
                                          r.in.data, r.in.counts.data(), r.in.offsets.data(), r.in.types.data(),
                                          r.graph.get(), r.request.address()));
    if (options_.form == Form::blocking && r.in.ids.empty()) finish(r);
  }

  bool test_round(Round& r) const {
    if (!r.pending.load(std::memory_order_relaxed)) return true;
    if (options_.form == Form::blocking) return false;
    int done = 0;
    REQUIRE_MPI(MPI_Test(r.request.address(), &done, MPI_STATUS_IGNORE));
    if (done) r.pending.store(false, std::memory_order_relaxed);
    return done;
  }

  void finish(Round& r) const {
    if (options_.form == Form::blocking && r.pending.load(std::memory_order_relaxed)) {
      REQUIRE_MPI(MPI_Neighbor_alltoallw(r.out.data, r.out.counts.data(), r.out.offsets.data(), r.out.types.data(),
                                         r.in.data, r.in.counts.data(), r.in.offsets.data(), r.in.types.data(),
                                         r.graph.get()));
      r.pending.store(false, std::memory_order_relaxed);
    }
    Spin spin(yield_);
    while (!test_round(r)) spin.again();
  }

  void run_lists(Ids ids, int slot, Share share) const {
    for (int id : ids) list(id, slot).run(share);
  }

  NeighborOptions options_;
  bool yield_;
  int rounds_per_slot_ = 1;
  std::vector<Where> where_;       // by message id
  std::vector<CopyList> packing_;  // [slot][message id]; empty unless packed
  std::vector<Memory> buffers_;
  std::vector<std::unique_ptr<Round>> rounds_;  // [slot][round]
};

}  // namespace

std::unique_ptr<Link> open_neighbor(const LinkContext& context, const std::vector<std::string>& words) {
  if (mpi_traits.simulated)
    throw UnavailableError(
        "transport neighbor needs neighbourhood collectives, which SMPI declares but does not have; use p2p or "
        "persistent, or a build on a real MPI");
  NeighborOptions chosen;
  chosen.packed = has(words, "packed");
  if (has(words, "blocking")) chosen.form = Form::blocking;
  if (has(words, "persistent")) chosen.form = Form::persistent;
  if (!mpi_traits.neighbor_init && chosen.form == Form::persistent)
    throw UnavailableError(
        "option persistent of transport neighbor needs MPI_Neighbor_alltoallw_init, which this "
        "MPI lacks; drop the option, or build with an MPI 4 library such as MPICH 4 or Open MPI 5");
  return std::make_unique<NeighborLink>(context, chosen);
}

}  // namespace haloscope
