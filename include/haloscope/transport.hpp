// Transports: *how* a message gets to its peer.
#pragma once

#include "haloscope/cxx20.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "haloscope/plan.hpp"
#include "haloscope/share.hpp"
#include "haloscope/transport_traits.hpp"
#include "haloscope/view.hpp"
#include "haloscope/which_mpi.hpp"

namespace haloscope {

namespace device {
class Device;
class Stream;
}  // namespace device

/// Message ids of a plan.
using Ids = std::span<const int>;

/// How far fields have moved in memory: bytes, by their numbers.
using SlotOffsets = std::span<const std::ptrdiff_t>;

/// Which calls of a link may wait for other ranks inside a call of MPI. The others poll.
enum class Blocks : std::uint8_t { never, send, always };

/// An opened transport: everything prepared for one plan, its fields and all their slots.
/// Every call is allocation-free outside MPI's own calls. A link destroyed with messages in flight completes them.
class Link {
 public:
  virtual ~Link() = default;
  virtual void post(Ids in, int slot) = 0;  ///< receives may arrive from here on
  /// Gather one share of the regions (nothing to do where regions are sent in place). Every share is called once, in
  /// any order and on any thread, between post() and send().
  virtual void pack(Ids out, int slot, Share share) = 0;
  virtual void send(Ids out, int slot) = 0;  ///< start sending packed messages
  virtual bool test(Ids in, int slot) = 0;   ///< true when all have arrived; lets the transport progress
  virtual void wait(Ids in, int slot) = 0;   ///< until all have arrived
  /// Scatter one share into the halos (nothing to do where received in place); called as pack() is, after wait().
  virtual void unpack(Ids in, int slot, Share share) = 0;
  /// CopyList::lines() of pack() or unpack() of these messages: tells whether sharing it among threads pays. 0: never.
  virtual std::int64_t packing_lines(Ids, int) const { return 0; }
  virtual bool test_complete(Ids out, int slot) = 0;  ///< like `complete`, without blocking
  virtual void complete(Ids out, int slot) = 0;       ///< until sent messages' memory may be changed
  /// Peer of the first message of `in` not yet arrived, -1 when none: what a watchdog reports.
  virtual int waiting_for(Ids in, int slot) const = 0;
  virtual Blocks blocks() const { return Blocks::never; }
  /// Whether messages arrive in wait() only, in a call of MPI that waits for other ranks: test() stays false until
  /// then.
  virtual bool arrives_in_wait() const { return false; }
  /// Whether peers must have begun the same exchange before it starts, where they may not: a call may wait for them
  /// inside MPI, or abandon() cannot take back what lies in the fields' memory.
  virtual bool must_be_awaited() const { return blocks() != Blocks::never; }
  /// Whether follow() works, the same on all ranks.
  virtual bool follows() const { return false; }
  /// The fields of a slot lie elsewhere, as the context's views say now; strides are as before, and nothing of the slot
  /// is under way. Local. @param moved  bytes, by field.
  virtual void follow(int, SlotOffsets) {}
  /// It will move nothing any more, nor be destroyed, since peers may never answer: whatever runs on its own ends, and
  /// nothing arrives in the fields' memory any more. May be called again. Throws nothing, not even where memory is
  /// exhausted.
  virtual void abandon() {}
  /// Whether its destructor, with nothing in flight, waits for no other rank: it frees no window or communicator, and
  /// no reduction is under way. The same on all ranks. Where it is false, an exchange ends once all ranks have come to
  /// its end, and reports ranks that are late.
  virtual bool closes_alone() const { return false; }
  /// Findings and decisions made when it was opened, for records and logs ("memory model unified, 1 window"); may be
  /// empty.
  virtual std::string report() const { return ""; }
};

/// A link between fields in device memory. A stream does all work on them; pack() and unpack() do nothing.
/// The calls return at once; messages may be sent, and halos swept, once the stream has done that work. Where
/// TransportTraits::signals, pack_on() gives the stream a kernel that also unpacks, and send() comes while it runs.
class DeviceLink : public Link {
 public:
  void pack(Ids, int, Share) final {}
  void unpack(Ids, int, Share) final {}
  virtual void pack_on(device::Stream& stream, Ids out, int slot) = 0;
  virtual void unpack_on(device::Stream& stream, Ids in, int slot) = 0;
  virtual void to_host(device::Stream& stream, Ids out, int slot) = 0;   ///< packed messages, OpKind::d2h
  virtual void to_device(device::Stream& stream, Ids in, int slot) = 0;  ///< arrived messages, OpKind::h2d
  /// Whether a stream and the host tell each other by words how far messages have come. A program may then give a
  /// stream to_device(), and what follows, before the messages have arrived, but not before their post(): wait() or
  /// test() lets the stream go on.
  virtual bool tells_by_words() const { return false; }
  /// ... later work of the stream starts once the messages posted last have arrived,
  virtual void await_on(device::Stream&, Ids, int) {}
  /// ... and the messages given to to_host() last are in host memory.
  virtual bool is_on_host(Ids, int) const { return false; }
  /// Where a message lies in device memory between packing and sending, or arriving and unpacking; null: nowhere that
  /// sweeps could read or write.
  virtual std::byte* place(int, int) { return nullptr; }
  /// Instead of unpacking: work of the stream up to here has read what arrived in a slot.
  virtual void taken_on(device::Stream&, int) {}
};

class TagRange;

/// The tags of a link on a communicator that it shares with others: the same on all ranks. Only tags that were reserved
/// on that communicator can be some.
struct MessageTags {
  static constexpr int parts = 16;  ///< of a message that is sent in parts, and its signals
  int first;
  int messages;  ///< of a slot: one more than the largest tag of the plan, with several slots of any rank's plan
  MessageTags(const TagRange& reserved, int messages_of_slot);
  /// How many tags a link needs.
  static int needed(int messages, int slots) { return parts * (messages * slots + 1); }
  /// Of a message of the plan, or a part of it. Ranks that exchange different slots by mistake wait for each other
  /// instead of taking each other's messages.
  int of(int plan_tag, int part = 0, int slot = 0) const {
    return first + parts * (1 + plan_tag + slot * messages) + part;
  }
  /// Of the empty messages of one-sided transports, from the sender or from the receiver of a message.
  int signal(int plan_tag, bool from_sender, int slot) const { return of(plan_tag, from_sender ? 1 : 2, slot); }
  /// Of the messages by which a link is opened.
  int opening(int plan_tag) const { return of(plan_tag, parts - 1); }
  /// Of what the ranks find out together while exchanges go on.
  int reduction() const { return first; }
  /// Of the reason why a rank cannot go on.
  int failure() const { return first + 1; }
  /// Of the barrier before a link ends that does not close alone.
  int ending() const { return first + 2; }
  // Nothing is sent with the tag first + 3: let_mpi_progress() looks for it, whatever `first` is.
};

/// What a link is opened on. `comm` belongs to the caller and outlives the link; rank numbers are the plan's.
struct LinkContext {
  MPI_Comm comm = MPI_COMM_NULL;
  const Layout* layout = nullptr;
  const Plan* plan = nullptr;
  const Views* views = nullptr;
  bool yield = false;  ///< more ranks than cores: give the core away while waiting
  int threads = 1;     ///< most shares that pack() and unpack() are called with
  /// Node of each rank, counted from 0; empty: as MPI reports. Ranks of one node must share memory.
  std::vector<int> nodes = {};
  /// Messages (by id) that this link moves, where it is a part of a composite; else it moves all.
  std::optional<std::vector<bool>> mine = {};
  /// The device whose memory `views` point into; null: host memory.
  device::Device* device = nullptr;
  /// A choice made at run time is kept for later programs, and theirs is taken, see docs/understand/transports.md.
  bool remembers = false;
  MessageTags tags;  ///< no other link that is in use on `comm` has them
  bool moves(int id) const { return !mine || (*mine)[static_cast<std::size_t>(id)]; }
};

/// A kind of link.
struct Transport {
  const TransportTraits* traits;
  /// Collective over `context.comm`, even where a rank has no message.
  /// @param options  words after the colon of a strategy ("p2p:testany,datatype"), checked against the traits.
  /// @throws UnavailableError when this MPI lacks what it needs.
  std::unique_ptr<Link> (*open)(const LinkContext& context, const std::vector<std::string>& options);
};

/// Open a transport by its name. Collective over `context.comm`.
/// @throws UsageError as check_options() does and, on all ranks alike, where the views of any rank do not fit its plan;
///         UnavailableError when this MPI lacks what it needs.
std::unique_ptr<Link> open_transport(const std::string& name, const LinkContext& context,
                                     const std::vector<std::string>& options);
/// Make your own transport known, to strategies too. What `traits` points to must live until the end.
/// @throws UsageError for a name that is taken.
void add_transport(const Transport& transport);

}  // namespace haloscope
