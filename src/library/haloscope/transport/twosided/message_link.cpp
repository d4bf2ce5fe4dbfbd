#include "haloscope/transport/twosided/message_link.hpp"

#include <sched.h>

#include <new>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/mpi_traits.hpp"
#include "haloscope/core/clock.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope {

MessageOptions MessageOptions::parse(const std::vector<std::string>& words) {
  return {.blocking = has(words, "blocking"), .testany = has(words, "testany"), .datatype = has(words, "datatype")};
}

MessageLink::MessageLink(const LinkContext& context, const MessageOptions& options, const MessagePlaces& placement)
    : context_(context),
      options_(options),
      placed_(placement != nullptr),
      messages_(context.messages()),
      slots_(context.slots()) {
  ports_ = std::make_unique<Port[]>(static_cast<std::size_t>(messages_) * slots_);
  scratch_.requests.resize(messages_);
  scratch_.owners.resize(messages_);
  scratch_.finished.resize(messages_);
  place(placement);
}

/// Places a message in the fields: in place or, with option datatype, described by a type. @return false: it needs a
/// buffer.
bool MessageLink::place_in_fields(Port& p, const Message& message, int slot) {
  p.data = contiguous_span(*context_.views, slot, message);
  const bool described = p.data == nullptr && options_.datatype;
  if (described) p.data = MPI_BOTTOM;
  p.type = described ? region_type(*context_.views, slot, *context_.plan, message) : byte_type(message.bytes);
  return described || p.data != nullptr;
}

void MessageLink::place_in_buffer(Port& p, const Message& message, int slot, std::byte* buffer) {
  p.data = buffer;
  p.packing = make_packing(*context_.views, slot, message, buffer);
}

/// Decides the place of each message: the caller's, in the fields, or in a separate buffer per slot.
void MessageLink::place(const MessagePlaces& placement) {
  std::size_t needed = 0;
  for (int slot = 0; slot < slots_; ++slot)
    for (int id = 0; id < messages_; ++id) {
      if (!context_.moves(id)) continue;
      const Message& message = context_.plan->messages[id];
      Port& p = port(id, slot);
      p.peer = message.peer;
      p.tag = context_.tags.of(message.tag, 0, slot);
      p.out = message.out;
      if (placement) {
        p.data = placement(id, slot);
        p.type = byte_type(p.data ? message.bytes : 0);
      } else if (!place_in_fields(p, message, slot)) {
        needed += whole_lines(message.bytes);
      }
    }
  if (needed == 0) return;
  buffers_ = Memory(needed, "message buffers");
  std::byte* buffer = buffers_.data();
  for (int slot = 0; slot < slots_; ++slot)
    for (int id = 0; id < messages_; ++id) {
      if (!context_.moves(id) || port(id, slot).data != nullptr) continue;
      const Message& message = context_.plan->messages[id];
      place_in_buffer(port(id, slot), message, slot, buffer);
      buffer += whole_lines(message.bytes);
    }
}

void MessageLink::follow(int slot, SlotOffsets moved) {
  for (int id = 0; id < messages_; ++id) {
    if (!context_.moves(id)) continue;
    const Message& message = context_.plan->messages[id];
    Port& p = port(id, slot);
    if (!p.packing.empty()) {
      p.packing.follow(moved);
      continue;
    }
    if (!place_in_fields(p, message, slot))
      place_in_buffer(p, message, slot, late_buffers_.emplace_back(whole_lines(message.bytes)).data());
    renew(p);
  }
}

void MessageLink::post(Ids in, int slot) {
  for (int id : in) {
    Port& p = port(id, slot);
    p.scattered = false;
    p.pending.store(true, std::memory_order_relaxed);
    start_receive(p);
  }
}

void MessageLink::pack(Ids out, int slot, Share share) {
  for (int id : out) port(id, slot).packing.run(share);
}

void MessageLink::send(Ids out, int slot) {
  for (int id : out) {
    Port& p = port(id, slot);
    p.pending.store(true, std::memory_order_relaxed);
    start_send(p);
    if (p.request == MPI_REQUEST_NULL) p.pending.store(false, std::memory_order_relaxed);  // a blocking send
  }
}

/// Collects the requests of `ids` that are still in flight.
int MessageLink::gather(Ids ids, int slot) {
  int count = 0;
  for (int id : ids) {
    Port& p = port(id, slot);
    if (!p.pending.load(std::memory_order_relaxed)) continue;
    scratch_.requests[count] = p.request;
    scratch_.owners[count++] = &p;
  }
  return count;
}

/// Handles an arrival; MPI has set `request`, the port's, to null or to the inactive persistent request.
void MessageLink::arrived(Port& p, MPI_Request request) {
  p.request = request;
  if (options_.testany && !p.out) {
    p.packing.run();
    p.scattered = true;
  }
  p.pending.store(false, std::memory_order_relaxed);
}

bool MessageLink::poll_all(Ids ids, int slot) {
  const int count = gather(ids, slot);
  if (count == 0) return true;
  int done = 0;
  REQUIRE_MPI(MPI_Testall(count, scratch_.requests.data(), &done, MPI_STATUSES_IGNORE));
  if (!done) return false;
  for (int i = 0; i < count; ++i) arrived(*scratch_.owners[i], scratch_.requests[i]);
  return true;
}

bool MessageLink::poll_each(Ids ids, int slot) {
  const int count = gather(ids, slot);
  if (count == 0) return true;
  int finished = 0;
  REQUIRE_MPI(MPI_Testsome(count, scratch_.requests.data(), &finished, scratch_.finished.data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < finished; ++i) {
    const int which = scratch_.finished[i];
    arrived(*scratch_.owners[which], scratch_.requests[which]);
  }
  return finished == count;
}

/// Polls rather than blocks: between polls the core can be yielded (more ranks than cores), and after a while
/// messages are tested one by one, so that a watchdog on another thread can report the missing one.
void MessageLink::settle(Ids ids, int slot) {
  if (mpi_traits.simulated) {  // a poll costs simulated time, and blocking yields the core to others
    const int count = gather(ids, slot);
    REQUIRE_MPI(MPI_Waitall(count, scratch_.requests.data(), MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; ++i) arrived(*scratch_.owners[i], scratch_.requests[i]);
    return;
  }
  constexpr int patience = 20000, polls_a_look = 256;  // polls: a millisecond or more
  for (int polls = 0;; ++polls) {
    const bool each = options_.testany || polls > patience;
    if (each ? poll_each(ids, slot) : poll_all(ids, slot)) return;
    if (context_.yield || polls > patience) sched_yield();
    if (polls > patience + polls_a_look) {
      polls = patience;
      look_at_wait();
    }
  }
}

bool MessageLink::test(Ids in, int slot) { return options_.testany ? poll_each(in, slot) : poll_all(in, slot); }

void MessageLink::wait(Ids in, int slot) {
  if (!options_.blocking) return settle(in, slot);
  for (const int& id : in) settle({&id, 1}, slot);
}

void MessageLink::unpack(Ids in, int slot, Share share) {
  for (int id : in)
    if (const Port& p = port(id, slot); !p.scattered) p.packing.run(share);
}

std::int64_t MessageLink::packing_lines(Ids ids, int slot) const {
  std::int64_t lines = 0;
  for (int id : ids)  // testany scatters on arrival, which leaves the team no work
    if (const Port& p = port(id, slot); p.out || !options_.testany) lines += p.packing.lines();
  return lines;
}

bool MessageLink::test_complete(Ids out, int slot) { return poll_all(out, slot); }
void MessageLink::complete(Ids out, int slot) { settle(out, slot); }

int MessageLink::waiting_for(Ids in, int slot) const {
  for (int id : in)
    if (const Port& p = port(id, slot); p.pending.load(std::memory_order_relaxed)) return p.peer;
  return -1;
}

/// Cancels a receive. @return true if no data have arrived and none will.
bool MessageLink::cancel(Port& p, double deadline_s) {
  REQUIRE_MPI(MPI_Cancel(&p.request));
  MPI_Status status;
  int done = 0, cancelled = 0;
  while (!done && now_s() < deadline_s) REQUIRE_MPI(MPI_Test(&p.request, &done, &status));
  if (!done) return false;
  p.pending.store(false, std::memory_order_relaxed);
  REQUIRE_MPI(MPI_Test_cancelled(&status, &cancelled));
  return cancelled != 0;
}

/// Abandons messages. A message that no receive matches would keep MPI from freeing its communicator, so it may
/// arrive in other memory.
void MessageLink::abandon() try {
  constexpr double longest_s = 1;
  const double deadline_s = now_s() + longest_s;
  for (int slot = 0; slot < slots_; ++slot)
    for (int id = 0; id < messages_; ++id) {
      Port& p = port(id, slot);
      if (p.out || placed_ || !p.packing.empty() || !p.pending.load(std::memory_order_relaxed)) continue;
      if (!cancel(p, deadline_s)) continue;
      const auto bytes = context_.plan->messages[id].bytes;
      auto* const elsewhere = new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)];  // not freed
      if (elsewhere == nullptr) continue;
      const MessageType type = byte_type(bytes);
      REQUIRE_MPI(MPI_Irecv(elsewhere, type.count(), type.type(), p.peer, p.tag, comm(), &p.request));
    }
} catch (const std::exception&) {  // MPI fails: the remaining messages arrive in the fields
}

void MessageLink::finish() {
  for (int slot = 0; slot < slots_; ++slot)
    for (int id = 0; id < messages_; ++id) settle({&id, 1}, slot);
}

}  // namespace haloscope
