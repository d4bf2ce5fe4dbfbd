// Transports, which move messages to their peers.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "haloscope/extend/plan.hpp"
#include "haloscope/extend/share.hpp"
#include "haloscope/extend/transport_traits.hpp"
#include "haloscope/extend/which_mpi.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

namespace device {
class Device;
class Stream;
}  // namespace device

/// Message ids of a plan.
using Ids = std::span<const int>;

/// Distances that fields have moved in memory: bytes, by the numbers of the fields.
using SlotOffsets = std::span<const std::ptrdiff_t>;

/// Calls of a link that may wait for other ranks inside a call of MPI. The others poll.
enum class Blocks : std::uint8_t { never, send, always };

/// An opened transport: everything prepared for one plan, its fields and all their slots.
/// Every call is allocation-free outside MPI's own calls. A link destroyed with messages in flight completes them.
class Link {
 public:
  virtual ~Link() = default;
  virtual void post(Ids in, int slot) = 0;  ///< messages may arrive from here on
  /// Gathers one share of the regions (does nothing where regions are sent in place). It is called once for every
  /// share, in any order and on any thread, between post() and send().
  virtual void pack(Ids out, int slot, Share share) = 0;
  virtual void send(Ids out, int slot) = 0;  ///< start sending packed messages
  virtual bool test(Ids in, int slot) = 0;   ///< true if all have arrived; lets the transport progress
  virtual void wait(Ids in, int slot) = 0;   ///< until all have arrived
  /// Scatters one share into the halos (does nothing where received in place); called like pack(), after wait().
  virtual void unpack(Ids in, int slot, Share share) = 0;
  /// Returns CopyList::lines() of pack() or unpack() of these messages, which decides whether to share the work among
  /// threads. 0: never share.
  virtual std::int64_t packing_lines(Ids, int) const { return 0; }
  virtual bool test_complete(Ids out, int slot) = 0;  ///< like `complete`, without blocking
  virtual void complete(Ids out, int slot) = 0;       ///< until sent messages' memory may be changed
  /// Returns the peer of the first message of `in` that has not arrived, -1 if none, for reports of a watchdog.
  virtual int waiting_for(Ids in, int slot) const = 0;
  virtual Blocks blocks() const { return Blocks::never; }
  /// Returns true if messages arrive in wait() only, in a call of MPI that waits for other ranks: test() stays false
  /// until then.
  virtual bool arrives_in_wait() const { return false; }
  /// Returns true if, where ranks may begin different exchanges, a start must wait until its peers have begun the
  /// same one: a call may wait for them inside MPI, or abandon() cannot undo writes to the fields' memory.
  virtual bool must_be_awaited() const { return blocks() != Blocks::never; }
  /// Returns true if follow() works; equal on all ranks.
  virtual bool follows() const { return false; }
  /// Follows the fields of a slot to the addresses that the context's views now hold; strides are as before, and no
  /// exchange of the slot is in flight. Local. @param moved bytes, by field.
  virtual void follow(int, SlotOffsets) {}
  /// Stops the link, which is then neither used nor destroyed, since peers may never answer: threads and kernels of
  /// the link end, and no data arrive in the fields' memory any more. May be called again. Throws nothing, not even
  /// where memory is exhausted.
  virtual void abandon() {}
  /// Returns true if its destructor, with no message in flight, does not wait for other ranks: it frees no window or
  /// communicator, and no reduction is in flight. Equal on all ranks. Where it is false, an exchange ends once all
  /// ranks have reached its end, and reports ranks that are late.
  virtual bool closes_alone() const { return false; }
  /// Returns findings and decisions made when it was opened, for records and logs ("memory model unified, 1 window");
  /// may be empty.
  virtual std::string report() const { return ""; }
};

/// A link between fields in device memory. A stream does all work on them; pack() and unpack() do nothing. The calls
/// return immediately; messages may be sent, and halos swept, once the stream has done that work. Where
/// TransportTraits::signals is set, pack_on() enqueues a kernel that also unpacks, and send() is called while it
/// runs.
class DeviceLink : public Link {
 public:
  void pack(Ids, int, Share) final {}
  void unpack(Ids, int, Share) final {}
  virtual void pack_on(device::Stream& stream, Ids out, int slot) = 0;
  virtual void unpack_on(device::Stream& stream, Ids in, int slot) = 0;
  virtual void to_host(device::Stream& stream, Ids out, int slot) = 0;   ///< packed messages, OpKind::d2h
  virtual void to_device(device::Stream& stream, Ids in, int slot) = 0;  ///< arrived messages, OpKind::h2d
  /// Returns true if a stream and the host report the progress of messages to each other by words in memory. A
  /// program may then enqueue to_device(), and later work, before the messages have arrived, but not before their
  /// post(): wait() or test() lets the stream go on.
  virtual bool tells_by_words() const { return false; }
  /// Where tells_by_words(): makes later work of the stream start once the messages posted last have arrived.
  virtual void await_on(device::Stream&, Ids, int) {}
  /// Where tells_by_words(): returns true if the messages passed to to_host() last are in host memory.
  virtual bool is_on_host(Ids, int) const { return false; }
  /// Returns the address of a message in device memory between packing and sending, or between arrival and unpacking;
  /// null: sweeps cannot access the message.
  virtual std::byte* place(int, int) { return nullptr; }
  /// Replaces unpacking: work of the stream up to here has read the messages that arrived in a slot.
  virtual void taken_on(device::Stream&, int) {}
};

class TagRange;

/// The tags of a link on a communicator that it shares with others, equal on all ranks. They must have been reserved
/// on that communicator.
struct MessageTags {
  static constexpr int parts = 16;  ///< of a message that is sent in parts, including its signals
  static constexpr int laps = 6;    ///< numbers of exchanges in tags of signals; two are in flight at most
  int first;
  int messages;  ///< per slot: one more than the largest tag of the plan; with several slots, of any rank's plan
  MessageTags(const TagRange& reserved, int messages_of_slot);
  /// Returns the number of tags that a link needs.
  static int needed(int messages, int slots) { return parts * (messages * slots + 1); }
  /// Returns the tag of a message of the plan, or of a part of it. Ranks that exchange different slots by mistake
  /// wait for each other instead of receiving each other's messages.
  int of(int plan_tag, int part = 0, int slot = 0) const {
    return first + parts * (1 + plan_tag + slot * messages) + part;
  }
  /// Returns the tag of an empty message of one-sided transports, from the sender or from the receiver of a message.
  /// It has the number of the exchange modulo `laps`: MPI guarantees fewer tags than a run has iterations.
  int signal(int plan_tag, bool from_sender, int slot, std::int64_t exchange = 0) const {
    return of(plan_tag, 2 * static_cast<int>(exchange % laps) + (from_sender ? 1 : 2), slot);
  }
  /// Returns the tag of the messages by which a link is opened.
  int opening(int plan_tag) const { return of(plan_tag, parts - 1); }
  /// Returns the tag of reductions that run during exchanges.
  int reduction() const { return first; }
  /// Returns the tag of the reason why a rank cannot continue.
  int failure() const { return first + 1; }
  /// Returns the tag of the barrier before the end of a link that does not close alone.
  int ending() const { return first + 2; }
  // No message is sent with the tag first + 3: let_mpi_progress() probes for it, for any `first`.
  /// Returns the tag of MPI_Comm_create_group. In Open MPI its messages match messages between ranks with this tag.
  int group() const { return first + 4; }
};

/// The input of Transport::open. `comm` belongs to the caller and outlives the link; rank numbers are the plan's.
struct LinkContext {
  MPI_Comm comm = MPI_COMM_NULL;
  const Layout* layout = nullptr;
  const Plan* plan = nullptr;
  const Views* views = nullptr;
  bool yield = false;  ///< more ranks than cores: yield the core while waiting
  int threads = 1;     ///< maximum shares that pack() and unpack() are called with
  /// Node of each rank, counted from 0; empty: as reported by MPI. Ranks of one node must share memory.
  std::vector<int> nodes = {};
  /// Messages (by id) that this link moves, where it is a part of a composite; else it moves all messages.
  std::optional<std::vector<bool>> mine = {};
  /// The device whose memory `views` point into; null: host memory.
  device::Device* device = nullptr;
  /// True: a choice made at run time is cached for later programs, and a cached choice is used, see
  /// docs/understand/transports.md.
  bool remembers = false;
  MessageTags tags;  ///< of this link alone among the links in use on `comm`
  bool moves(int id) const { return !mine || (*mine)[static_cast<std::size_t>(id)]; }
  int messages() const { return static_cast<int>(plan->messages.size()); }  ///< of the plan, moved or not
  /// Returns true if some rank has several blocks, so that ranks may have different numbers of fields.
  bool several_blocks() const {
    return layout->has_several_blocks() || (plan->spec.onto && plan->spec.onto->has_several_blocks());
  }
  /// Returns true if messages may go between any ranks, which have no places in a process grid.
  bool between_any_ranks() const {
    return plan->spec.motion == Motion::redistribute || layout->has_several_blocks() || plan->meets_itself();
  }
  int slots() const { return static_cast<int>(views->front().size()); }  ///< of each field
};

/// A kind of link.
struct Transport {
  const TransportTraits* traits;
  /// Opens a link. Collective over `context.comm`, even where a rank has no message.
  /// @param options  words after the colon of a strategy ("p2p:testany,datatype"), checked against the traits.
  /// @throws UnavailableError when this MPI lacks a feature that it needs.
  std::unique_ptr<Link> (*open)(const LinkContext& context, const std::vector<std::string>& options);
};

/// Opens a transport by its name. Collective over `context.comm`.
/// @throws UsageError as check_options() does, for a transport of devices where the fields are in host memory and, on
///         all ranks, where the views of any rank do not fit its plan; UnavailableError when this MPI lacks a feature
///         that it needs.
std::unique_ptr<Link> open_transport(const std::string& name, const LinkContext& context,
                                     const std::vector<std::string>& options);
/// Registers a transport, for strategies too. `*traits` must live until the program ends.
/// @throws UsageError for a name that is taken.
void add_transport(const Transport& transport);

}  // namespace haloscope
