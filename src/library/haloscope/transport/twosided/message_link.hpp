// Common parts of all transports that move each message of a plan by one MPI request: places of bytes, packing,
// waiting. A transport of this family only defines the start of a receive and of a send.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "haloscope/extend/transport.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/pack/block_copy.hpp"
#include "haloscope/transport/twosided/datatype.hpp"

namespace haloscope {

/// Option words of the family.
struct MessageOptions {
  bool blocking = false;  ///< MPI_Send instead of MPI_Isend; waits for receives one by one
  bool testany = false;   ///< complete receives in order of arrival and scatter each immediately
  bool datatype = false;  ///< MPI datatypes instead of host packing

  static MessageOptions parse(const std::vector<std::string>& words);
};

/// A function that returns the place of each message of each slot, where the caller decides it (such as buffers of a
/// device).
using MessagePlaces = std::function<std::byte*(int id, int slot)>;

/// Opens nonblocking messages from and to places of the caller, without packing. Where a place is null, the message
/// is empty, a mere notification. As Transport::open() otherwise.
std::unique_ptr<Link> open_placed_messages(const LinkContext& context, const MessagePlaces& placement);

class MessageLink : public Link {
 public:
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
  Blocks blocks() const override { return options_.blocking ? Blocks::send : Blocks::never; }
  bool closes_alone() const override { return true; }
  bool follows() const override { return true; }
  void follow(int slot, SlotOffsets moved) override;
  /// Redirects receives into fields to memory that stays; waits a second for a message that MPI has begun to receive.
  void abandon() override;

 protected:
  /// One message in one slot.
  struct Port {
    int peer = 0, tag = 0;
    bool out = false;
    void* data = nullptr;  ///< field memory (in place), a buffer, or MPI_BOTTOM (datatype)
    MessageType type;
    CopyList packing;  ///< gathers (out) or scatters (in); empty in place and with datatypes
    MPI_Request request = MPI_REQUEST_NULL;
    std::atomic<bool> pending = false;  ///< started, not yet finished; a watchdog on another thread may read it
    bool scattered = false;             ///< testany: already unpacked
  };

  MessageLink(const LinkContext& context, const MessageOptions& options, const MessagePlaces& placement = {});
  /// Completes messages in flight. Derived classes call it first in their destructors (they own the requests).
  void finish();

  virtual void start_receive(Port& port) = 0;
  virtual void start_send(Port& port) = 0;
  /// Renews the request of a port whose data have moved, or have another type.
  virtual void renew(Port&) {}

  /// Returns the port of a message in a slot.
  Port& port(int id, int slot) { return ports_[static_cast<std::size_t>(slot) * messages_ + id]; }
  const Port& port(int id, int slot) const { return ports_[static_cast<std::size_t>(slot) * messages_ + id]; }
  int messages() const { return messages_; }
  int slots() const { return slots_; }
  MPI_Comm comm() const { return context_.comm; }
  const MessageOptions& options() const { return options_; }

 private:
  bool cancel(Port& port, double deadline_s);
  void place(const MessagePlaces& placement);
  bool place_in_fields(Port& port, const Message& message, int slot);
  void place_in_buffer(Port& port, const Message& message, int slot, std::byte* buffer);
  int gather(Ids ids, int slot);
  bool poll_all(Ids ids, int slot);
  bool poll_each(Ids ids, int slot);
  void settle(Ids ids, int slot);
  void arrived(Port& port, MPI_Request request);

  LinkContext context_;
  MessageOptions options_;
  bool placed_;  // places are the caller's, not in fields
  int messages_, slots_;
  Memory buffers_;
  std::vector<Memory> late_buffers_;  // of messages that were in place until fields moved apart
  std::unique_ptr<Port[]> ports_;
  // Scratch of the calls below, so that none of them allocates: pending requests, their ports, finished ones.
  struct Scratch {
    std::vector<MPI_Request> requests;
    std::vector<Port*> owners;
    std::vector<int> finished;
  } scratch_;
};

}  // namespace haloscope
