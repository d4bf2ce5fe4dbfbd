// Messages between fields in device memory, by MPI: through buffers in host memory (`staged`) or straight from buffers
// in device memory (`aware`).
#include <memory>

#include "haloscope/core/error.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/strategy.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/transport/builtin.hpp"
#include "haloscope/transport/message_link.hpp"

namespace haloscope {
namespace {

using device::Buffer;
using device::CopyLaunch;
using device::Space;

/// Buffers of all messages, by slot and then id: messages of one round and direction, whose ids follow each other, are
/// packed by one launch and copied by one call.
class BufferedLink final : public DeviceLink {
 public:
  /// @param host  where messages wait for MPI; Space::device: MPI takes them from device memory.
  BufferedLink(const LinkContext& context, Space host)
      : device_(*context.device), messages_(static_cast<int>(context.plan->messages.size())) {
    check_views(context);
    lay_out(context, host);
    compile(context);
    for (int slot = 0; slot < slots(context); ++slot) arrived_.push_back(device_.event());
    std::byte* const base = host_.size() > 0 ? host_.data() : buffers_.data();
    mpi_ = open_placed_messages(context, [&](int id, int slot) { return base + span_of(id, slot).begin; });
  }

  /// A buffer may be written again only after its last message has been taken from it.
  void post(Ids in, int slot) override {
    arrived_[static_cast<std::size_t>(slot)]->wait();
    mpi_->post(in, slot);
  }
  void send(Ids out, int slot) override { mpi_->send(out, slot); }
  bool test(Ids in, int slot) override { return mpi_->test(in, slot); }
  void wait(Ids in, int slot) override { mpi_->wait(in, slot); }
  bool test_complete(Ids out, int slot) override { return mpi_->test_complete(out, slot); }
  void complete(Ids out, int slot) override { mpi_->complete(out, slot); }
  int waiting_for(Ids in, int slot) const override { return mpi_->waiting_for(in, slot); }

  void pack_on(device::Stream& stream, Ids out, int slot) override { move_on(stream, out, slot); }
  void unpack_on(device::Stream& stream, Ids in, int slot) override {
    move_on(stream, in, slot);
    stream.record(*arrived_[static_cast<std::size_t>(slot)]);
  }
  void to_host(device::Stream& stream, Ids out, int slot) override {
    const ByteRange range = span_of(out, slot);
    if (range.size() > 0) stream.copy(host_.data() + range.begin, buffers_.data() + range.begin, range.size());
  }
  void to_device(device::Stream& stream, Ids in, int slot) override {
    const ByteRange range = span_of(in, slot);
    if (range.size() > 0) stream.copy(buffers_.data() + range.begin, host_.data() + range.begin, range.size());
  }

 private:
  struct Place {
    ByteRange bytes;
    int first_piece = 0, end_piece = 0;
  };
  static int slots(const LinkContext& context) { return static_cast<int>(context.views->front().size()); }
  Place& place(int id, int slot) { return places_[static_cast<std::size_t>(slot) * messages_ + id]; }
  const ByteRange& span_of(int id, int slot) { return place(id, slot).bytes; }
  /// Ids of a set follow each other, and so do their buffers.
  ByteRange span_of(Ids ids, int slot) {
    if (ids.empty()) return {};
    return {place(ids.front(), slot).bytes.begin, place(ids.back(), slot).bytes.end};
  }

  void lay_out(const LinkContext& context, Space host) {
    places_.resize(static_cast<std::size_t>(messages_) * slots(context));
    std::size_t at = 0;
    for (int slot = 0; slot < slots(context); ++slot)
      for (int id = 0; id < messages_; ++id) {
        const auto bytes = whole_lines(context.plan->messages[id].bytes);
        place(id, slot).bytes = {at, at + bytes};
        at += bytes;
      }
    buffers_ = Buffer(device_, Space::device, at);
    if (host != Space::device) host_ = Buffer(device_, host, at);
  }

  /// Cuts the regions of all messages into the pieces of the copy kernel and puts those into device memory.
  void compile(const LinkContext& context) {
    std::vector<CopyLaunch::Piece> all;
    for (int slot = 0; slot < slots(context); ++slot)
      for (int id = 0; id < messages_; ++id) {
        const Message& message = context.plan->messages[id];
        std::byte* at = buffers_.data() + place(id, slot).bytes.begin;
        std::vector<BlockCopy> copies;
        for (const Region& region : message.regions) {
          const SlotView& view = (*context.views)[region.quantity][slot];
          copies.push_back(message.out ? region_to_buffer(view, region.box, at)
                                       : buffer_to_region(view, region.box, at));
          at += region.box.volume() * view.stride[0];
        }
        place(id, slot).first_piece = static_cast<int>(all.size());
        for (const auto& piece : device::cut_copies(copies)) all.push_back(piece);
        place(id, slot).end_piece = static_cast<int>(all.size());
      }
    pieces_ = Buffer(device_, Space::device, all.size() * sizeof(CopyLaunch::Piece));
    const auto stream = device_.stream();
    stream->copy(pieces_.data(), all.data(), pieces_.size());
    stream->finish();
  }

  void move_on(device::Stream& stream, Ids ids, int slot) {
    if (ids.empty()) return;
    const int first = place(ids.front(), slot).first_piece, end = place(ids.back(), slot).end_piece;
    device_.kernels().copy(stream, {reinterpret_cast<const CopyLaunch::Piece*>(pieces_.data()) + first, end - first});
  }

  device::Device& device_;
  int messages_;
  std::vector<Place> places_;
  Buffer buffers_, host_, pieces_;
  std::vector<std::unique_ptr<device::Event>> arrived_;  // by slot: its received messages have been taken
  std::unique_ptr<Link> mpi_;
};

void need_device(const LinkContext& context, const std::string& transport) {
  if (context.device == nullptr)
    throw UsageError("transport '" + transport + "' moves fields of a device, and these are in host memory; use p2p");
}

class Staged final : public Transport {
 public:
  std::string name() const override { return "staged"; }
  std::string summary() const override {
    return "device: packed there, copied to host memory, sent by MPI, and back; pageable: through ordinary memory";
  }
  std::unique_ptr<Link> open(const LinkContext& context, const std::vector<std::string>& words) const override {
    check_options(name(), words);
    need_device(context, name());
    return std::make_unique<BufferedLink>(context, has(words, "pageable") ? Space::pageable : Space::pinned);
  }
};

class Aware final : public Transport {
 public:
  std::string name() const override { return "aware"; }
  std::string summary() const override { return "device: packed there and given to an MPI that takes device memory"; }
  std::unique_ptr<Link> open(const LinkContext& context, const std::vector<std::string>& words) const override {
    check_options(name(), words);
    need_device(context, name());
    if (!context.device->info().host_addressable)
      throw UnavailableError(
          "transport 'aware' needs an MPI that is known to take device memory, which is not probed yet "
          "for real devices; use staged");
    return std::make_unique<BufferedLink>(context, Space::device);
  }
};

}  // namespace

const Transport& staged_transport() {
  static const Staged transport;
  return transport;
}

const Transport& aware_transport() {
  static const Aware transport;
  return transport;
}

}  // namespace haloscope
