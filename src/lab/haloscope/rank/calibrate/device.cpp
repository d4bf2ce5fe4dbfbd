// Calibration of a device: the cost of its kernels, its copies and handing work to it, by the device's own clock.
#include <algorithm>
#include <cstring>

#include "haloscope/core/clock.hpp"
#include "haloscope/device/stream_blocker.hpp"
#include "haloscope/field/arrangement.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/rank/calibrate/parts.hpp"
#include "haloscope/rank/calibrate/sweeps.hpp"
#include "haloscope/rank/measure/run.hpp"
#include "haloscope/rank/pace/clock_map.hpp"
#include "haloscope/stepper/device_fields.hpp"

namespace haloscope {
namespace {

using Json = nlohmann::json;
using device::Space;

/// A block with neighbours on all sides in the memory of a device, which the ranks of a node share as in a run.
class DeviceBlock {
 public:
  /// Collective. @param slots  of the field.
  DeviceBlock(MPI_Comm comm, const Request& request, int slots)
      : choice_(alone(request.choice)),
        candidate_(choice_),
        plan_(make_plan(neighboured(choice_), 0, exchange_spec(candidate_))),
        fields_(comm, candidate_, plan_,
                Arrangement(plan_, std::vector<int>(plan_.spec.quantities.size(), slots), true)),
        begin_(fields_.device().event()),
        end_(fields_.device().event()),
        fork_(fields_.device().event(false)),
        join_(fields_.device().event(false)),
        hold_(fields_.device()) {
    fill();
  }

  /// Ordinary numbers, f32 and f64.
  void fill() const {
    fields_.write([](const RowPart& row, std::byte* here) { std::memset(here, 0x3f, row.bytes.size()); });
  }
  /// Fills the fields with bytes that distinguish positions.
  void scramble() const {
    fields_.write([state = scrambled](const RowPart& row, std::byte* here) mutable {
      haloscope::scramble({here, row.bytes.size()}, state);
    });
  }

  const Plan& plan() const { return plan_; }
  const Views& views() const { return fields_.views(); }
  const DeviceFields& fields() const { return fields_; }
  device::Device& device() const { return fields_.device(); }
  device::Stream& stream(int number) const { return *fields_.streams().streams[number]; }
  int levels() const { return choice_.substeps == Substeps::blocked ? choice_.depth : 1; }

  /// Holds the first stream, so that later work is enqueued before its turn comes.
  void hold() const { hold_.on(stream(0)); }
  /// Returns the seconds of the device for the operations that `work` enqueues on its first stream.
  template <class F>
  double seconds(F work) const {
    hold();
    stream(0).record(*begin_);
    work(stream(0));
    stream(0).record(*end_);
    end_->wait();
    return device().seconds(*begin_, *end_);
  }

  /// Returns the same for concurrent sweeps on both streams.
  double seconds_of_two() const {
    return seconds([this](device::Stream& stream) {
      stream.record(*fork_);
      this->stream(1).wait(*fork_);
      sweep(stream, 0, 1);
      sweep(this->stream(1), 0, 2);
      this->stream(1).record(*join_);
      stream.wait(*join_);
    });
  }

  /// Runs a step's sweep, or all sweeps that one launch fuses.
  void sweep(device::Stream& stream, int slot, int into) const {
    fields_.sweeps().run(stream, views()[0][slot], views()[0][into], plan_.own_cells(), levels());
  }

 private:
  static Choice alone(Choice choice) {
    choice.ranks = 1;
    return choice;
  }
  /// As if the block had a neighbour beyond every side: the halos of all are messages.
  static Layout neighboured(const Choice& choice) {
    GridSpec grid = choice.grid;
    ProcessGrid processes{1, 1, 1};
    for (int d = 0; d < grid.dims; ++d) {
      grid.periodic[d] = true;
      grid.cells[d] *= 2;
      processes[d] = 2;
    }
    return Layout(grid, processes);
  }

  Choice choice_;
  Candidate candidate_;
  Plan plan_;
  DeviceFields fields_;
  std::unique_ptr<device::Event> begin_, end_, fork_, join_;
  device::StreamBlocker hold_;
};

/// The messages of one round and direction on their way: packed by one launch, copied by one call, and back.
class Staging {
 public:
  Staging(DeviceBlock& block, int round) : block_(block) {
    for (const Message& m : block.plan().messages)
      if (m.round == round) (m.out ? out_ : in_).push_back(&m);
    for (const Message* m : out_) bytes_ += static_cast<std::size_t>(m->bytes);
    buffer_ = device::Buffer(block.device(), Space::device, bytes_);
    pinned_ = device::Buffer(block.device(), Space::pinned, bytes_);
    pageable_ = device::Buffer(block.device(), Space::pageable, bytes_);
    pack_ = pieces(out_);
    unpack_ = pieces(in_);
  }
  bool empty() const { return out_.empty(); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_); }
  std::int64_t row_bytes() const {
    return out_[0]->regions[0].box.extent(0) * block_.plan().spec.quantities[0].element_bytes;
  }
  void pack(device::Stream& stream) const { block_.device().kernels().copy(stream, pack_.all()); }
  void unpack(device::Stream& stream) const { block_.device().kernels().copy(stream, unpack_.all()); }
  void to_host(device::Stream& stream, Space space) const { stream.copy(host(space), buffer_.data(), bytes_); }
  void to_device(device::Stream& stream, Space space) const { stream.copy(buffer_.data(), host(space), bytes_); }

  /// Returns true if messages sent this way arrive, byte for byte.
  bool right() const {
    block_.scramble();
    const std::vector<std::byte> sent = values(out_);
    device::Stream& stream = block_.stream(0);
    pack(stream), to_host(stream, Space::pinned);
    stream.finish();
    std::memcpy(pageable_.data(), pinned_.data(), bytes_);
    to_device(stream, Space::pageable), unpack(stream);
    const bool good = sent == values(in_);
    block_.fill();
    return good;
  }

 private:
  std::byte* host(Space space) const { return (space == Space::pinned ? pinned_ : pageable_).data(); }
  device::PieceList pieces(const std::vector<const Message*>& messages) const {
    std::vector<BlockCopy> copies;
    std::byte* at = buffer_.data();
    for (const Message* m : messages)
      for (const Region& r : m->regions) {
        const SlotView& view = block_.views()[r.quantity][0];
        copies.push_back(m->out ? region_to_buffer(view, r.box, at) : buffer_to_region(view, r.box, at));
        at += r.box.volume() * view.stride[0];
      }
    return {block_.device(), device::cut_copies(copies)};
  }
  /// The points of messages, in the order in which they are packed.
  std::vector<std::byte> values(const std::vector<const Message*>& messages) const {
    std::vector<std::byte> found;
    const auto add = [&](const RowPart& row, const std::byte* here) {
      found.insert(found.end(), here, here + row.bytes.size());
    };
    for (const Message* m : messages)
      for (const Region& r : m->regions) block_.fields().read(r.quantity, 0, r.box, add);
    return found;
  }

  DeviceBlock& block_;
  std::vector<const Message*> out_, in_;
  std::size_t bytes_ = 0;
  device::Buffer buffer_, pinned_, pageable_;
  device::PieceList pack_, unpack_;
};

/// Returns the host's time to enqueue work with the events of a timed operation, and the extra time on the host's clock
/// over the device's until the host sees the end of the work: the way of a command to an idle device, and of its
/// completion back. The host's clock starts when it has enqueued the first event, the device's when the event gets
/// there. The rest is enqueued during a hold, before its turn comes, so that the host's gaps are not in either time.
std::array<double, 2> handing_over(DeviceBlock& block, const Staging& staging,
                                   std::vector<std::unique_ptr<device::Event>>& events) {
  device::Stream& stream = block.stream(0);
  const double begin = now_s();
  for (std::size_t e = 0; e + 1 < events.size(); e += 2) {
    stream.record(*events[e]);
    staging.pack(stream);
    stream.record(*events[e + 1]);
  }
  const double handed = (now_s() - begin) / static_cast<double>(events.size() / 2);
  stream.finish();
  stream.record(*events[0]);
  const double start = now_s();
  block.hold();
  staging.pack(stream);
  stream.record(*events[1]);
  while (!events[1]->reached()) {
  }
  const double all = now_s() - start;
  return {handed, std::max(all - block.device().seconds(*events[0], *events[1]), 1e-9)};
}

/// Measures several sweeps per step: each one alone, on a block of the same size for every rank.
Json pass_points(Session& s, Choice choice, Sampler& sample) {
  choice.grid.cells[2] *= choice.ranks;
  choice.process_grid = "1x1x" + std::to_string(choice.ranks);
  const auto opened = open_run(s.comm, choice);
  Run& run = *opened;
  run.initialise("random");
  return points_of_sweeps(run.candidate().step, [&](int stage, int sweep) {
    const auto seconds = sample.parts<1>([&] { return std::array{run.seconds_on_device(stage, sweep)}; })[0];
    return swept_point(run, run.plan().own_cells().volume(), seconds);
  });
}

}  // namespace

Json device_kernel_points(Session& s, const CalibrateRequest& request, Sampler& sample) {
  if (!is_one_sweep(Candidate(request.plain.choice).step)) return pass_points(s, request.plain.choice, sample);
  DeviceBlock block(s.comm, request.plain, 3);
  const int levels = block.levels();
  const auto one = [&](device::Stream& stream) { block.sweep(stream, 0, 1); };
  const auto [alone, beside] = sample.parts<2>([&] {
    return std::array{block.seconds(one) / levels, block.seconds_of_two() / levels};
  });
  return {{{"cells", block.plan().own_cells().volume()}, {"sweep_s", alone}, {"two_sweeps_s", beside}}};
}

Json device_copy_points(Session& s, const CalibrateRequest& request, Sampler& sample, bool& right) {
  DeviceBlock block(s.comm, request.plain, 1);
  std::vector<std::unique_ptr<device::Event>> events;
  for (int i = 0; i < 16; ++i) events.push_back(block.device().event());
  ClockReader clock(block.device(), false);
  Json points = Json::array();
  for (int round = 0; round < request.plain.choice.grid.dims; ++round) {
    const Staging staging(block, round);
    if (staging.empty()) continue;
    right &= staging.right();
    const auto [pack, unpack, d2h, h2d, slow_d2h, slow_h2d, hand, notice, signal] = sample.parts<9>([&] {
      const auto took = [&](auto work) { return block.seconds(work); };
      using S = device::Stream;
      const auto handed = handing_over(block, staging, events);
      return std::array{took([&](S& on) { staging.pack(on); }),
                        took([&](S& on) { staging.unpack(on); }),
                        took([&](S& on) { staging.to_host(on, Space::pinned); }),
                        took([&](S& on) { staging.to_device(on, Space::pinned); }),
                        took([&](S& on) { staging.to_host(on, Space::pageable); }),
                        took([&](S& on) { staging.to_device(on, Space::pageable); }),
                        handed[0],
                        handed[1],
                        clock.read_once().round_trip_s / 2};
    });
    points.push_back({{"dimension", round},
                      {"bytes", staging.bytes()},
                      {"row_bytes", staging.row_bytes()},
                      {"pack_s", pack},
                      {"unpack_s", unpack},
                      {"d2h_pinned_s", d2h},
                      {"d2h_pageable_s", slow_d2h},
                      {"h2d_pinned_s", h2d},
                      {"h2d_pageable_s", slow_h2d},
                      {"operation_s", hand},
                      {"notice_s", notice},
                      {"signal_s", signal}});
  }
  return points;
}

}  // namespace haloscope
