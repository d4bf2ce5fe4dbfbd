// Steps of one process with imitated neighbours, for the share of the exchange that the interior's sweep hides.
//
// Two ranks that share a GPU cannot measure it: while one exchanges, the other's sweep occupies the GPU. Here the halo
// stream packs and copies to pinned memory, and the host copies in place of a neighbour's message. Then the halo stream
// copies back, unpacks and sweeps the boundary, either in sequence with the interior or concurrently.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "gpu_rig.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope::bench {

/// Seconds of a step, by sample.
struct OverlapTimes {
  std::vector<double> serial, together, interior;
};

class OverlapStep {
 public:
  /// Sweeps a box from slot 0 of a field into another slot, on a stream.
  using Sweep = std::function<void(device::Stream&, const Box&, int slot)>;

  /// @param fields  with three slots: one is read, one is written by sequential steps, one by overlapped steps.
  OverlapStep(const Rig& rig, const Fields& fields, Sweep sweep)
      : rig_(rig),
        fields_(fields),
        sweep_(std::move(sweep)),
        halo_(rig.device->stream(true)),
        packed_(rig.device->event(false)),
        owned_(fields.plan.owned(0)),
        inner_(grown(owned_, negative(fields.plan.dims), negative(fields.plan.dims))) {
    std::vector<Box> leave, arrive;
    for (int d = 0; d < fields.plan.dims; ++d)
      for (const bool low : {true, false}) {
        Box sent = owned_;
        low ? sent.hi[d] = sent.lo[d] + 1 : sent.lo[d] = sent.hi[d] - 1;
        Index over{0, 0, 0};  // to the far side, as in a periodic grid
        over[d] = low ? owned_.extent(d) : -owned_.extent(d);
        leave.push_back(sent), arrive.push_back(shifted(sent, over));
      }
    const SlotView& view = fields.views[0][0];
    std::size_t bytes = 0;
    for (const Box& box : leave) bytes += static_cast<std::size_t>(box.volume() * view.stride[0]);
    for (auto [buffer, space] : {std::pair{&send_, device::Space::device}, std::pair{&receive_, device::Space::device},
                                 std::pair{&out_, device::Space::pinned}, std::pair{&in_, device::Space::pinned}})
      *buffer = device::Buffer(*rig.device, space, bytes);
    std::vector<BlockCopy> packs, unpacks;
    std::size_t at = 0;
    for (std::size_t i = 0; i < leave.size(); ++i) {
      packs.push_back(region_to_buffer(view, leave[i], send_.data() + at));
      unpacks.push_back(buffer_to_region(view, arrive[i], receive_.data() + at));
      at += static_cast<std::size_t>(leave[i].volume() * view.stride[0]);
    }
    pack_ = device::PieceList(*rig.device, device::cut_copies(packs));
    unpack_ = device::PieceList(*rig.device, device::cut_copies(unpacks));
  }

  std::size_t message_bytes() const { return send_.size(); }

  /// Takes samples of both kinds of step and of the interior's sweep, in turn.
  OverlapTimes measure() {
    const auto serial = [this] { step_one_after_the_other(); };
    const auto together = [this] { step_side_by_side(); };
    const auto interior = [this] { sweep_interior(); };
    seconds(1, serial), seconds(1, together);  // first calls are slower
    const int n = rig_.calls(seconds(1, serial));
    OverlapTimes times;
    for (int s = 0; s < 2 * rig_.samples + 1; ++s) {  // their differences are noisier than ratios
      times.serial.push_back(seconds(n, serial));
      times.together.push_back(seconds(n, together));
      times.interior.push_back(seconds(n, interior));
    }
    return times;
  }

  /// Returns whether both kinds of step have given the same bytes.
  bool agrees() const {
    const int slowest = fields_.plan.dims - 1;
    const std::int64_t element = fields_.views[0][1].stride[0];
    const std::int64_t layer = element * owned_.volume() / owned_.extent(slowest);
    const std::int64_t layers = std::max<std::int64_t>(1, (std::int64_t{64} << 20) / layer);
    for (std::int64_t from = 0; from < owned_.extent(slowest); from += layers) {
      Box strip = owned_;
      strip.lo[slowest] = from;
      strip.hi[slowest] = std::min(from + layers, owned_.hi[slowest]);
      if (downloaded(1, strip) != downloaded(2, strip)) return false;
    }
    return true;
  }

 private:
  static Widths negative(int dims) { return {-1, dims > 1 ? -1 : 0, dims > 2 ? -1 : 0}; }

  template <class F>
  static double seconds(int calls, F call) {
    const auto from = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count() / calls;
  }
  void step_one_after_the_other() {
    send();
    deliver();
    sweep_(*halo_, inner_, 1);
    sweep_boundary(1);
    halo_->finish();
  }
  void step_side_by_side() {
    send();
    sweep_(*rig_.stream, inner_, 2);
    deliver();
    sweep_boundary(2);
    halo_->finish();
    rig_.stream->finish();
  }
  void sweep_interior() {
    sweep_(*rig_.stream, inner_, 1);
    rig_.stream->finish();
  }
  void send() {
    rig_.device->kernels().copy(*halo_, pack_.all());
    halo_->copy(out_.data(), send_.data(), send_.size());
    halo_->record(*packed_);
  }
  /// Delivers the imitated neighbour's message: the host copies it, like MPI between processes of one machine.
  void deliver() {
    packed_->wait();
    std::memcpy(in_.data(), out_.data(), out_.size());
    halo_->copy(receive_.data(), in_.data(), in_.size());
    rig_.device->kernels().copy(*halo_, unpack_.all());
  }
  void sweep_boundary(int slot) {
    for (const Box& box : subtract(owned_, inner_)) sweep_(*halo_, box, slot);
  }
  std::vector<std::byte> downloaded(int slot, const Box& box) const {
    const SlotView& view = fields_.views[0][static_cast<std::size_t>(slot)];
    std::vector<std::byte> bytes(static_cast<std::size_t>(box.volume() * view.stride[0]));
    const device::Buffer gathered(*rig_.device, device::Space::device, bytes.size());
    const device::PieceList pieces(*rig_.device, device::cut_copies({region_to_buffer(view, box, gathered.data())}));
    rig_.device->kernels().copy(*rig_.stream, pieces.all());
    rig_.stream->copy(bytes.data(), gathered.data(), bytes.size());
    rig_.stream->finish();
    return bytes;
  }

  const Rig& rig_;
  const Fields& fields_;
  Sweep sweep_;
  std::unique_ptr<device::Stream> halo_;
  std::unique_ptr<device::Event> packed_;
  Box owned_, inner_;
  device::Buffer send_, receive_, out_, in_;
  device::PieceList pack_, unpack_;
};

}  // namespace haloscope::bench
