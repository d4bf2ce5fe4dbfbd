// Calibration of packing: gathering and scattering one message of a block, and copying between its two sides.
#include <algorithm>

#include "haloscope/core/clock.hpp"
#include "haloscope/core/stores.hpp"
#include "haloscope/field/field.hpp"
#include "haloscope/model/traffic.hpp"
#include "haloscope/pack/region_copy.hpp"
#include "haloscope/rank/calibrate/parts.hpp"
#include "haloscope/rank/measure/run.hpp"

namespace haloscope {
namespace {

using Json = nlohmann::json;
using Samples = std::vector<double>;

/// A block with neighbours on both sides of one dimension, in memory as a step has it: swept in turn.
class Block {
 public:
  /// @param ranks  in dimension `d`: 2, so that messages go to a neighbour, or 1: the block is its own neighbour.
  Block(const Choice& choice, int d, int ranks)
      : candidate_(choice),
        layout_(layout(choice, d, ranks)),
        plan_(make_plan(layout_, 0, exchange_spec(candidate_))),
        storage_(points(), candidate_.step.slots()) {
    for (int q : exchanged(candidate_)) views_.push_back(storage_.views()[q]);
    for (const auto& slots : storage_.views())
      for (std::size_t slot = 0; slot < slots.size(); ++slot) by_slot_[slot].push_back(slots[slot]);
    for (const Quantity& q : candidate_.step.quantities) centrings_.push_back(q.centring);
    if (candidate_.app.open)
      sweeper_ =
          candidate_.app.open({candidate_.problem, candidate_.step, {}, plan_.cells, choice.isa, choice.threads});
    for (int q = 0; q < static_cast<int>(candidate_.step.quantities.size()); ++q)
      for (int slot = 0; slot < slots(); ++slot)
        for (std::byte& b : storage_.bytes(q, slot)) b = std::byte{0x3f};  // ordinary numbers, f32 and f64
  }

  const Plan& plan() const { return plan_; }
  const Views& views() const { return views_; }
  int slot() const { return slot_; }
  int slots() const { return candidate_.step.slots(); }
  /// Of the first quantity that messages hold.
  std::span<std::byte> bytes(int slot) const { return storage_.bytes(exchanged(candidate_).front(), slot); }

  /// The stage's first sweep: the other slot becomes the current one.
  void sweep() {
    const int into = slots() == 2 ? 1 - slot_ : 0;
    SweepArgs args;
    args.problem = &candidate_.problem;
    args.in = by_slot_[slot_].data();
    args.out = by_slot_[into].data();
    args.centrings = centrings_.data();
    args.whole = plan_.own_cells();
    args.dims = plan_.dims;
    args.stream = goes_around_cache(candidate_.choice.stores,
                                    plan_.allocated(0).volume() * plan_.spec.quantities[0].element_bytes);
    const SweepSpec& spec = candidate_.step.stages.front().sweeps.front();
    team([&](Share share) {
      SweepArgs mine = args;
      mine.region = part_of(plan_.own_cells(), share);
      if (!mine.region.empty()) sweeper_ ? sweeper_->sweep(mine) : spec.run(mine);
    });
    slot_ = into;
  }

  template <class F>
  void team(F part) const {
    if (threads() == 1) return part(Share{});
#pragma omp parallel for num_threads(threads()) schedule(static, 1)
    for (int thread = 0; thread < threads(); ++thread) part(Share{thread, threads()});
  }
  /// As CommOps copies: the team meets after each stage.
  void copy(const CopyList& list) const {
    for (int stage = 0; stage < list.stages(); ++stage) team([&](Share share) { list.run_stage(stage, share); });
  }

 private:
  static Layout layout(const Choice& choice, int d, int ranks) {
    GridSpec grid = choice.grid;
    ProcessGrid processes{1, 1, 1};
    grid.periodic = {};
    grid.periodic[d] = true;
    grid.cells[d] *= ranks;
    processes[d] = ranks;
    return Layout(grid, processes);
  }

  int threads() const { return candidate_.choice.threads; }
  /// Every quantity of the step, with the halos that the exchange fills.
  Plan points() const {
    ExchangeSpec all;
    all.quantities = candidate_.step.quantities;
    for (const Widths& w : halos_of(candidate_.step, candidate_.step.stages.front(), candidate_.choice.depth))
      all.widths.push_back({w, w});
    return make_plan(layout_, 0, all);
  }

  Candidate candidate_;
  Layout layout_;
  Plan plan_;
  Storage storage_;
  Views views_;                       // of the exchanged fields
  std::vector<SlotView> by_slot_[2];  // of all quantities
  std::vector<Centring> centrings_;
  std::unique_ptr<Sweeper> sweeper_;
  int slot_ = 0;
};

/// Returns the time of reading the clock, to be subtracted from the time between two readings.
double clock_cost() {
  double least = 1;
  for (int i = 0; i < 100; ++i) {
    const double begin = now_s();
    least = std::min(least, now_s() - begin);
  }
  return least;
}

/// The two messages that leave a block and the two that come back, packed into and unpacked from the same buffers.
class PackedPair {
 public:
  explicit PackedPair(Block& block) : block_(block) {
    for (const Message& m : block.plan().messages) (m.out ? out_ : in_).push_back(&m);
    for (const Message* m : out_) buffers_.emplace_back(static_cast<std::size_t>(m->bytes));
    for (int slot = 0; slot < block.slots(); ++slot)
      for (std::size_t m = 0; m < out_.size(); ++m) {
        packs_[slot].push_back(make_pack(block.views(), slot, *out_[m], buffers_[m].data()));
        unpacks_[slot].push_back(make_unpack(block.views(), slot, *in_[m], buffers_[m].data()));
      }
  }
  /// Returns true if messages are packed: one contiguous run is sent as it is.
  bool needed() const { return !contiguous_span(block_.views(), 0, *out_[0]); }
  /// Returns the shape of a message in the block; copies between the two sides of a separate block have the same shape.
  model::Traffic traffic() const {
    return model::traffic_of_messages(block_.plan())[out_[0] - block_.plan().messages.data()];
  }
  /// Bytes of one slot, halos included: they decide whether a sweep leaves it in the cache.
  std::int64_t block_bytes() const {
    return block_.plan().allocated(0).volume() * block_.plan().spec.quantities[0].element_bytes;
  }
  int messages() const { return static_cast<int>(out_.size()); }
  void pack() const { run(packs_[block_.slot()]); }
  void unpack() const { run(unpacks_[block_.slot()]); }

  /// Whether packed messages arrive, byte for byte.
  bool right() {
    std::uint32_t state = scrambled;
    scramble(block_.bytes(block_.slot()), state);
    const Samples before = values(out_);
    pack();
    unpack();
    const bool good = before == values(in_);
    for (std::byte& b : block_.bytes(block_.slot())) b = std::byte{0x3f};
    return good;
  }

 private:
  void run(const std::vector<CopyList>& lists) const {
    block_.team([&](Share share) {
      for (const CopyList& list : lists) list.run(share);
    });
  }
  /// The bytes of the messages' regions, cell by cell, as numbers.
  Samples values(const std::vector<const Message*>& messages) const {
    Samples found;
    const SlotView& view = block_.views()[0][block_.slot()];
    for (const Message* m : messages) {
      const Box& box = m->regions[0].box;
      for (std::int64_t z = box.lo[2]; z < box.hi[2]; ++z)
        for (std::int64_t y = box.lo[1]; y < box.hi[1]; ++y)
          for (std::int64_t x = box.lo[0]; x < box.hi[0]; ++x)
            for (std::int64_t b = 0; b < view.stride[0]; ++b)
              found.push_back(static_cast<double>(view.at({x, y, z})[b]));
    }
    return found;
  }

  Block& block_;
  std::vector<const Message*> out_, in_;
  std::vector<Memory> buffers_;
  std::vector<CopyList> packs_[2], unpacks_[2];
};

Samples less(Samples samples, double clock, int things) {
  for (double& s : samples) s = std::max(s - clock, 1e-10) / things;
  return samples;
}

/// Own-neighbour halos: copies between the two sides of one block.
void add_copies(Json& point, const Choice& choice, int d, Sampler& sample, double clock) {
  Block block(choice, d, 1);
  const CopyList lists[2] = {make_copies(block.views(), 0, block.plan().copies),
                             make_copies(block.views(), block.slots() - 1, block.plan().copies)};
  const auto [copied] = sample.parts<1>([&] {
    block.sweep();
    const double begin = now_s();
    block.copy(lists[block.slot()]);
    return std::array{now_s() - begin};
  });
  point["copy_bytes"] = lists[0].bytes();
  point["copy_s"] = less(copied, clock, 1);
}

}  // namespace

Json pack_points(const CalibrateRequest& request, Sampler& sample, bool& right) {
  Json points = Json::array();
  const double clock = clock_cost();
  for (int d = 0; d < request.plain.choice.grid.dims; ++d) {
    Block block(request.plain.choice, d, 2);
    PackedPair packing(block);
    const model::Traffic lies = packing.traffic();
    Json point{{"dimension", d},
               {"bytes", lies.bytes},
               {"row_bytes", lies.run_bytes},
               {"pitch_bytes", lies.pitch_bytes},
               {"block_bytes", packing.block_bytes()}};
    right &= packing.right();
    if (packing.needed()) {
      const auto [packed, unpacked] = sample.parts<2>([&] {
        block.sweep();
        const double begin = now_s();
        packing.pack();
        const double middle = now_s();
        packing.unpack();
        return std::array{middle - begin, now_s() - middle};
      });
      point["pack_s"] = less(packed, clock, packing.messages());
      point["unpack_s"] = less(unpacked, clock, packing.messages());
    }
    add_copies(point, request.plain.choice, d, sample, clock);
    points.push_back(point);
  }
  return points;
}

}  // namespace haloscope
