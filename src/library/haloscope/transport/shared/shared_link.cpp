#include "haloscope/transport/shared/shared_link.hpp"

#include <algorithm>
#include <map>
#include <new>

#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/library_comm.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/error.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/transport/views.hpp"

namespace haloscope {

/// A view in a form that all ranks of a node can resolve.
struct Published {
  std::int64_t window = -1, offset = 0;
  std::array<std::int64_t, 3> stride{};
};

namespace {

std::vector<Published> published(const Views& views) {
  std::vector<Published> list;
  for (const auto& slots : views)
    for (const SlotView& view : slots) {
      const SharedPlace place = shared_place(view.origin);
      list.push_back({place.window, place.offset, view.stride});
    }
  return list;
}

/// Returns the largest number of any rank. Collective.
std::size_t largest(std::size_t number, MPI_Comm comm) {
  std::int64_t most = static_cast<std::int64_t>(number);
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, comm));
  return static_cast<std::size_t>(most);
}

/// Returns true if peers may access the points of all messages between this rank and them.
bool are_reached(const Views& views, const Plan& plan, const Node& node) {
  for (const Message& message : plan.messages)
    for (const Region& region : message.regions)
      for (const SlotView& view : views[region.quantity]) {
        const std::span<std::byte> memory = memory_of(view, region.box);
        if (node.local(message.peer) >= 0 && !is_reached(memory.data(), memory.data() + memory.size())) return false;
      }
  return true;
}

/// Checks that peers may access the fields. Collective.
/// @param in_windows  all fields of this rank and its peers are in windows. @throws UsageError, on all ranks.
void require_reach(const LinkContext& context, const Node& node, bool in_windows) {
  if (anywhere(!in_windows, context.comm))
    throw UsageError(
        "transport shared reaches into its neighbours' fields, but these are not in memory that a node's "
        "ranks share; allocate the fields with memory = MemoryKind::shared, or use shared:packed");
  if (anywhere(!are_reached(*context.views, *context.plan, node), context.comm))
    throw UsageError(
        "transport shared reaches into other ranks' fields, but of these only the layers at neighbours are in memory "
        "that ranks share; allocate the fields with all_shared = true, or use shared:packed");
}

/// Returns the other end of a message: between the same two ranks, with the same tag.
int other_end(const Plan& peer, int rank, const Message& message) {
  for (std::size_t id = 0; id < peer.messages.size(); ++id)
    if (const Message& m = peer.messages[id]; m.peer == rank && m.tag == message.tag && m.out != message.out)
      return static_cast<int>(id);
  throw Error(Exit::failed, "rank " + std::to_string(peer.rank) + " has no counterpart of a message of rank " +
                                std::to_string(rank) + "; make both plans from the same layout and exchange");
}

}  // namespace

/// The layout of one rank's control memory. Every rank can compute it for every other.
/// All flags that one peer raises lie together, separate from flags of other peers.
struct SharedLink::ControlMap {
  std::vector<std::size_t> flags, buffers;  // by slot, then message
  std::size_t bytes = 0;

  ControlMap(const Plan& plan, const Node& node, int slots, bool packed) {
    const std::size_t messages = plan.messages.size();
    flags.resize(messages * slots);
    buffers.resize(messages * slots);
    std::map<int, std::vector<std::size_t>> by_peer;
    for (std::size_t i = 0; i < flags.size(); ++i)
      if (const int peer = plan.messages[i % messages].peer; node.local(peer) >= 0) by_peer[peer].push_back(i);
    for (const auto& [peer, ports] : by_peer) {
      for (std::size_t i : ports) {
        flags[i] = bytes;
        bytes += sizeof(Flag);
      }
      bytes = round_up(bytes, flags_apart);
    }
    for (const auto& [peer, ports] : by_peer)
      for (std::size_t i : ports)
        if (const Message& m = plan.messages[i % messages]; packed && !m.out) {
          buffers[i] = bytes;
          bytes += 2 * buffer_bytes(m);
        }
  }
  static std::size_t buffer_bytes(const Message& m) { return whole_lines(m.bytes); }
};

/// Data of the other ranks of the node.
struct SharedLink::Peers {
  /// @param control  place of this rank's control memory.
  Peers(const LinkContext& context, const Node& node, const SharedPlace& control) : context_(context) {
    auto mine = published(*context.views);
    if (context.several_blocks())  // others may have more
      mine.resize(largest(mine.size(), node.comm()), {control.window, 0, {}});
    mine.push_back({control.window, control.offset, {}});
    each_ = mine.size();
    all_.resize(each_ * static_cast<std::size_t>(node.size()));
    const int bytes = static_cast<int>(mine.size() * sizeof(Published));
    CHECK_MPI(MPI_Allgather(mine.data(), bytes, MPI_BYTE, all_.data(), bytes, MPI_BYTE, node.comm()));
    for (int id = 0; id < context.messages(); ++id) {
      const int peer = context.plan->messages[id].peer;
      if (!context.moves(id) || node.local(peer) < 0 || plans.count(peer)) continue;
      plans.emplace(peer, make_plan(*context.layout, peer, context.plan->spec));
      const Published* theirs = &all_[static_cast<std::size_t>(node.local(peer)) * each_];
      views.emplace(peer, views_of(peer, plans.at(peer), theirs));
      const Published& last = theirs[each_ - 1];
      controls.emplace(peer, shared_address(context.comm, peer, {static_cast<int>(last.window), last.offset}));
    }
  }
  /// Returns true if all views of all peers, and the rank's own, are in memory that every rank of the node can
  /// access.
  bool reachable() const {
    const bool own = std::all_of(all_.begin(), all_.end(), [](const Published& p) { return p.window >= 0; });
    return own && std::all_of(views.begin(), views.end(), [](const auto& peer) {
             for (const auto& slots : peer.second)
               for (const SlotView& view : slots)
                 if (view.origin == nullptr) return false;
             return true;
           });
  }
  /// Returns the windows that hold fields of any rank of the node, equal on all of them.
  std::vector<MPI_Win> windows() const {
    std::map<std::int64_t, MPI_Win> found;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (i % each_ + 1 < each_) found[all_[i].window] = shared_window(static_cast<int>(all_[i].window));
    std::vector<MPI_Win> list;
    for (const auto& [number, window] : found) list.push_back(window);
    return list;
  }

  std::map<int, Plan> plans;
  std::map<int, Views> views;
  std::map<int, std::byte*> controls;  // addresses of their control memory in this process

 private:
  Views views_of(int peer, const Plan& plan, const Published* p) const {
    Views list;
    const std::size_t slots = context_.views->front().size();
    for (const Quantity& quantity : plan.spec.quantities)
      list.emplace_back(slots, SlotView{nullptr, {}, quantity.element_bytes});
    for (auto& slots : list)
      for (SlotView& view : slots) {
        view.origin = shared_address(context_.comm, peer, {static_cast<int>(p->window), p->offset});
        view.stride = p->stride;
        ++p;
      }
    return list;
  }
  const LinkContext& context_;
  std::size_t each_ = 0;        // published by a rank: its fields' slots, then its control memory
  std::vector<Published> all_;  // by rank of the node
};

SharedLink::SharedLink(const LinkContext& context, SharedMode mode)
    : mode_(mode), yield_(context.yield), messages_(context.messages()), slots_(context.slots()) {
  const Node& node = node_of(context.comm, context.nodes);
  bool far = false;
  for (int id = 0; id < messages_; ++id)
    far = far || (context.moves(id) && node.local(context.plan->messages[id].peer) < 0);
  if (anywhere(far, context.comm))
    throw UnavailableError(
        "transport shared moves messages between ranks of one node, but some neighbours are on "
        "different nodes; use shared+p2p (or another transport after the +)");
  const ControlMap map(*context.plan, node, slots_, mode == SharedMode::packed);
  SharedArena::Allocation control = node.arena().allocate(node, map.bytes);
  control_ = std::move(control.memory);
  closes_alone_ = control.ends_alone;
  const Peers peers(context, node, shared_place(control_.data()));
  if (mode != SharedMode::packed) require_reach(context, node, peers.reachable());
  if (mode == SharedMode::fence) windows_ = peers.windows();
  connect(context, node, map, peers);
}

/// Gives every message its flags, its buffer and its copies.
void SharedLink::connect(const LinkContext& context, const Node& node, const ControlMap& map, const Peers& peers) {
  const Plan& plan = *context.plan;
  const bool packed = mode_ == SharedMode::packed;
  ports_ = std::make_unique<Port[]>(static_cast<std::size_t>(messages_) * slots_);
  pending_.reserve(static_cast<std::size_t>(messages_) * slots_);
  std::map<int, ControlMap> maps;
  for (const auto& [peer, theirs] : peers.plans) maps.emplace(peer, ControlMap(theirs, node, slots_, packed));

  for (int slot = 0; slot < slots_; ++slot)
    for (int id = 0; id < messages_; ++id) {
      const Message& message = plan.messages[id];
      if (node.local(message.peer) < 0) continue;
      const std::size_t here = static_cast<std::size_t>(slot) * messages_ + id;
      auto* theirs = new (control_.data() + map.flags[here]) Flag(0);
      if (!context.moves(id)) continue;
      const Plan& peer_plan = peers.plans.at(message.peer);
      const int peer_id = other_end(peer_plan, plan.rank, message);
      const Message& peer_message = peer_plan.messages[peer_id];
      const std::size_t there = static_cast<std::size_t>(slot) * peer_plan.messages.size() + peer_id;
      const ControlMap& peer_map = maps.at(message.peer);
      std::byte* peer_control = peers.controls.at(message.peer);
      auto* mine = reinterpret_cast<Flag*>(peer_control + peer_map.flags[there]);
      Port& p = port(id, slot);
      p.peer = message.peer;
      p.out = message.out;
      p.sender = FlagSender(theirs, mine);
      p.receiver = FlagReceiver(theirs, mine);
      const Views &own = *context.views, &others = peers.views.at(message.peer);
      for (int b = 0; packed && b < 2; ++b) {
        std::byte* buffer = message.out ? peer_control + peer_map.buffers[there] : control_.data() + map.buffers[here];
        buffer += b * ControlMap::buffer_bytes(message);
        p.copies[b] = make_packing(own, slot, message, buffer);
      }
      if (message.out && (mode_ == SharedMode::push || mode_ == SharedMode::fence))
        p.copies[0] = make_transfer(own, message, others, peer_message, slot);
      if (!message.out && mode_ == SharedMode::pull)
        p.copies[0] = make_transfer(others, peer_message, own, message, slot);
    }
  CHECK_MPI(MPI_Barrier(context.comm));  // no flag is raised before its owner has set it to 0
}

SharedLink::~SharedLink() { finish(); }

void SharedLink::follow(int slot, SlotOffsets moved) {
  for (int id = 0; id < messages_; ++id)
    for (CopyList& list : port(id, slot).copies) list.follow(moved);
}

/// Returns the number of the message that is posted or sent now.
std::uint64_t SharedLink::next(Port& p) {
  const bool fence = mode_ == SharedMode::fence;
  const std::uint64_t n = fence ? fences_.load(std::memory_order_relaxed) : p.count.load(std::memory_order_relaxed) + 1;
  p.count.store(n, std::memory_order_relaxed);
  return n;
}

void SharedLink::post(Ids in, int slot) {
  for (int id : in) {
    Port& p = port(id, slot);
    const std::uint64_t n = next(p);
    p.open = true;
    if (mode_ == SharedMode::push) p.receiver.grant(n);
  }
}

void SharedLink::pack(Ids out, int slot, Share share) {
  if (mode_ != SharedMode::packed) return;
  for (int id : out) {
    Port& p = port(id, slot);
    p.copies[buffer_of(p.count.load(std::memory_order_relaxed) + 1)].run(share);
  }
}

void SharedLink::push(Port& p) {
  p.copies[0].run();
  p.sender.announce(p.count.load(std::memory_order_relaxed));
  p.pending.store(false, std::memory_order_relaxed);
}

/// Sends messages. A neighbour in step grants while this rank fills its own halos; this rank does not wait for a late
/// one.
void SharedLink::send(Ids out, int slot) {
  if (mode_ == SharedMode::fence) fence();
  for (int id : out) {
    Port& p = port(id, slot);
    const std::uint64_t n = next(p);
    if (mode_ == SharedMode::fence) p.copies[0].run();
    if (mode_ == SharedMode::pull || mode_ == SharedMode::packed) p.sender.announce(n);
    if (mode_ != SharedMode::push) continue;
    constexpr int looks = 100;  // about two microseconds
    for (int i = 0; i < looks && !yield_ && !p.sender.may_push(n); ++i) relax();
    p.pending.store(true, std::memory_order_relaxed);
    if (p.sender.may_push(n))
      push(p);
    else
      pending_.push_back(&p);
  }
  if (mode_ == SharedMode::fence) ++unfenced_;
}

bool SharedLink::all_sent() {
  std::erase_if(pending_, [&](Port* p) {
    if (!p->sender.may_push(p->count.load(std::memory_order_relaxed))) return false;
    push(*p);
    return true;
  });
  return pending_.empty();
}

/// Returns true if the message posted or sent last is over, as far as this end has to wait for it.
bool SharedLink::settled(const Port& p) const {
  const std::uint64_t n = p.count.load(std::memory_order_relaxed);
  // Halos are stored into after one fence and full after the next.
  if (mode_ == SharedMode::fence) return fences_.load(std::memory_order_relaxed) >= n + (p.out ? 1 : 2);
  if (!p.out) return p.receiver.arrived(n);
  if (mode_ == SharedMode::pull) return p.sender.was_read(n);
  if (mode_ == SharedMode::packed) return p.sender.may_pack_after(n);
  return !p.pending.load(std::memory_order_relaxed);
}

bool SharedLink::all_settled(Ids ids, int slot) const {
  return std::all_of(ids.begin(), ids.end(), [&](int id) { return settled(port(id, slot)); });
}

bool SharedLink::test(Ids in, int slot) {
  // Only wait() fences, and a rank without messages must not skip it either.
  if (mode_ == SharedMode::fence) return unfenced_ == 0;
  all_sent();
  return all_settled(in, slot);
}

void SharedLink::wait(Ids in, int slot) {
  if (mode_ == SharedMode::fence) {
    if (unfenced_ == 0) return;
    fence();
    --unfenced_;
    return;
  }
  for (Spin spin(yield_); !test(in, slot);) spin.again();
}

void SharedLink::unpack(Ids in, int slot, Share share) {
  for (int id : in) {
    Port& p = port(id, slot);
    const std::uint64_t n = p.count.load(std::memory_order_relaxed);
    if (mode_ == SharedMode::pull) p.copies[0].run(share);
    if (mode_ == SharedMode::packed) p.copies[buffer_of(n)].run(share);
    if (share.parts > 1 && p.shares.fetch_add(1, std::memory_order_acq_rel) + 1 < share.parts) continue;
    p.shares.store(0, std::memory_order_relaxed);  // the last share ends the unpacking
    p.open = false;
    if (mode_ == SharedMode::pull || mode_ == SharedMode::packed) p.receiver.grant(n);
  }
}

std::int64_t SharedLink::packing_lines(Ids ids, int slot) const {
  if (mode_ != SharedMode::packed && mode_ != SharedMode::pull) return 0;
  std::int64_t lines = 0;
  for (int id : ids)
    if (const Port& p = port(id, slot); mode_ == SharedMode::packed || !p.out) lines += p.copies[0].lines();
  return lines;
}

bool SharedLink::test_complete(Ids out, int slot) {
  all_sent();
  return all_settled(out, slot);
}

void SharedLink::complete(Ids out, int slot) {
  if (mode_ == SharedMode::fence) return;  // the wait of the same round has fenced
  for (Spin spin(yield_); !test_complete(out, slot);) spin.again();
}

int SharedLink::waiting_for(Ids in, int slot) const {
  for (int id : in)
    if (const Port& p = port(id, slot); !settled(p)) return p.peer;
  return -1;
}

/// Fences: all earlier stores of the node's ranks are done and visible afterwards.
void SharedLink::fence() {
  for (MPI_Win window : windows_) REQUIRE_MPI(MPI_Win_fence(0, window));
  fences_.fetch_add(1, std::memory_order_relaxed);
}

void SharedLink::finish() {
  while (unfenced_ > 0) wait({}, 0);
  if (mode_ == SharedMode::fence) return;
  for (int slot = 0; slot < slots_; ++slot)
    for (int id = 0; id < messages_; ++id) {
      if (port(id, slot).out || !port(id, slot).open) continue;
      wait({&id, 1}, slot);
      unpack({&id, 1}, slot, {});
    }
  for (int slot = 0; slot < slots_; ++slot)
    for (int id = 0; id < messages_; ++id)
      if (port(id, slot).out) complete({&id, 1}, slot);
}

}  // namespace haloscope
