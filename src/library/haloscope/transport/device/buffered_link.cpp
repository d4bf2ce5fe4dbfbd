#include "haloscope/transport/device/buffered_link.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "haloscope/device/exchange.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/transport/device/message_pieces.hpp"
#include "haloscope/transport/twosided/message_link.hpp"

namespace haloscope {
namespace {

using device::Buffer;
using device::Space;

/// A word for each message and slot, in memory of the host that streams write and wait for. Its value is the number
/// of the message's last exchange that has reached this point.
class MessageWords {
 public:
  MessageWords(device::Device& device, std::size_t messages)
      : memory_(device, Space::mapped, messages * device::signal_words * sizeof(std::uint64_t)),
        exchanges_(messages, 0) {
    std::memset(memory_.data(), 0, memory_.size());
  }
  /// Begins an exchange of a message.
  void begin(std::size_t message) { ++exchanges_[message]; }
  void write_on(device::Stream& stream, std::size_t message) { stream.write(word(message), exchanges_[message]); }
  void await_on(device::Stream& stream, std::size_t message) { stream.wait(word(message), exchanges_[message]); }
  void write(std::size_t message) {
    std::atomic_ref(*word(message)).store(exchanges_[message], std::memory_order_release);
  }
  bool written(std::size_t message) const {
    return std::atomic_ref(*word(message)).load(std::memory_order_acquire) >= exchanges_[message];
  }

 private:
  std::uint64_t* word(std::size_t message) const {
    return reinterpret_cast<std::uint64_t*>(memory_.data()) + message * device::signal_words;
  }
  Buffer memory_;
  std::vector<std::uint64_t> exchanges_;
};

/// Buffers of all messages, by slot and then id: messages of one round and direction, whose ids are consecutive, are
/// packed by one launch and copied by one call.
class BufferedLink final : public DeviceLink {
 public:
  BufferedLink(const LinkContext& context, const BufferedOptions& options)
      : device_(*context.device), messages_(context.messages()) {
    agree(context.comm, [&] {
      lay_out(context, options.host);
      if (options.words) open_words();
    });
    pieces_.emplace(context, 1, [&](int, int slot, int id) { return place(id, slot); });
    for (int slot = 0; slot < context.slots(); ++slot) arrived_.push_back(device_.event(false));
    std::byte* const base = host_.size() > 0 ? host_.data() : buffers_.data();
    mpi_ = open_placed_messages(context, [&](int id, int slot) { return base + span_of(id, slot).begin; });
  }

  /// Releases streams that wait for messages, since they still use the buffers.
  ~BufferedLink() override {
    release_streams();
    for (auto& arrived : arrived_) device::call_even_if_lost([&] { arrived->wait(); });
  }
  void abandon() override {
    release_streams();
    mpi_->abandon();
  }

  bool closes_alone() const override { return mpi_->closes_alone(); }

  /// Posts receives; a buffer may be written again only after its last message has been read from it.
  void post(Ids in, int slot) override {
    arrived_[static_cast<std::size_t>(slot)]->wait();
    if (words_)
      for (int id : in) words_->begin(index(id, slot));
    mpi_->post(in, slot);
  }
  void send(Ids out, int slot) override { mpi_->send(out, slot); }
  bool test(Ids in, int slot) override {
    if (!mpi_->test(in, slot)) return false;
    note_arrived(in, slot);
    return true;
  }
  void wait(Ids in, int slot) override {
    mpi_->wait(in, slot);
    note_arrived(in, slot);
  }
  bool test_complete(Ids out, int slot) override { return mpi_->test_complete(out, slot); }
  void complete(Ids out, int slot) override { mpi_->complete(out, slot); }
  int waiting_for(Ids in, int slot) const override { return mpi_->waiting_for(in, slot); }

  void pack_on(device::Stream& stream, Ids out, int slot) override { pieces_->move_on(stream, out, 0, slot); }
  void unpack_on(device::Stream& stream, Ids in, int slot) override {
    pieces_->move_on(stream, in, 0, slot);
    taken_on(stream, slot);
  }
  std::byte* place(int id, int slot) override { return places_[index(id, slot)]; }
  void taken_on(device::Stream& stream, int slot) override { stream.record(*arrived_[static_cast<std::size_t>(slot)]); }
  void to_host(device::Stream& stream, Ids out, int slot) override {
    const ByteRange range = span_of(out, slot);
    if (host_.size() > 0 && range.size() > 0)
      stream.copy(host_.data() + range.begin, place(out.front(), slot), range.size());
    if (!words_ || out.empty()) return;
    words_->begin(index(out.front(), slot));
    words_->write_on(stream, index(out.front(), slot));
  }
  void to_device(device::Stream& stream, Ids in, int slot) override {
    const ByteRange range = span_of(in, slot);
    if (host_.size() > 0 && range.size() > 0)
      stream.copy(place(in.front(), slot), host_.data() + range.begin, range.size());
  }

  // Returns the word of a set of messages, which is the same in all its operations: the word of its first message.

  bool tells_by_words() const override { return words_.has_value(); }
  void await_on(device::Stream& stream, Ids in, int slot) override {
    if (words_ && !in.empty()) words_->await_on(stream, index(in.front(), slot));
  }
  bool is_on_host(Ids out, int slot) const override { return out.empty() || words_->written(index(out.front(), slot)); }

 private:
  std::size_t index(int id, int slot) const { return static_cast<std::size_t>(slot) * messages_ + id; }
  ByteRange& span_of(int id, int slot) { return spans_[index(id, slot)]; }
  /// Returns the bytes of a set, whose ids and buffers are consecutive.
  ByteRange span_of(Ids ids, int slot) {
    if (ids.empty()) return {};
    return {span_of(ids.front(), slot).begin, span_of(ids.back(), slot).end};
  }

  void lay_out(const LinkContext& context, Space host) {
    spans_.resize(static_cast<std::size_t>(messages_) * context.slots());
    std::size_t at = 0;
    for (int slot = 0; slot < context.slots(); ++slot)
      for (int id = 0; id < messages_; ++id) {
        const auto bytes = whole_lines(context.plan->messages[id].bytes);
        span_of(id, slot) = {at, at + bytes};
        at += bytes;
      }
    buffers_ = Buffer(device_, Space::device, at);
    if (host != Space::device) host_ = Buffer(device_, host, at);
    const bool in_place = context.plan->spec.reverse() && host != Space::device;
    for (int slot = 0; slot < context.slots(); ++slot)
      for (int id = 0; id < messages_; ++id) {
        const Message& message = context.plan->messages[id];
        places_.push_back(in_place && !message.out ? contiguous_span(*context.views, slot, message)
                                                   : buffers_.data() + span_of(id, slot).begin);
      }
  }

  void open_words() {
    if (const std::string reason = device_.refuse_words(); !reason.empty())
      throw UnavailableError("transport 'staged:stream' needs streams that write words and wait for them: " + reason +
                             "; use staged");
    words_.emplace(device_, std::max<std::size_t>(1, places_.size()));
  }
  void note_arrived(Ids in, int slot) {
    if (words_)
      for (int id : in) words_->write(index(id, slot));
  }
  /// Lets all streams that still wait for messages go on without them.
  void release_streams() {
    for (std::size_t message = 0; words_ && message < places_.size(); ++message) words_->write(message);
  }

  device::Device& device_;
  int messages_;
  std::vector<ByteRange> spans_;  // by slot and id, equal in both kinds of memory
  std::vector<std::byte*>
      places_;  // ... and in device memory, where contributions are copied directly to their landings
  Buffer buffers_, host_;
  std::optional<MessageWords> words_;
  std::optional<MessagePieces> pieces_;
  std::vector<std::unique_ptr<device::Event>> arrived_;  // by slot: its received messages have been read
  std::unique_ptr<Link> mpi_;
};

}  // namespace

std::unique_ptr<Link> open_buffered(const LinkContext& context, const BufferedOptions& options) {
  return std::make_unique<BufferedLink>(context, options);
}

}  // namespace haloscope
