#include "haloscope/field/field.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope {
namespace {

constexpr std::size_t guard = 256;  // bytes free before the first, between any two and after the last block
constexpr std::byte canary{0xC5};

// Counts blocks of the whole process, so that fields of different Storages do not start alike either.
std::atomic<std::uint64_t> blocks_so_far{0};

/// The part of a block that other ranks may read or write, given the bytes between its planes (rows in 2D, points in
/// 1D): the layers of the slowest dimension next to another rank if only that dimension is split, else all of it.
std::vector<ByteRange> reached(const Plan& plan, int q, std::size_t begin, std::size_t end, std::int64_t pitch) {
  const auto remote = [&](int d) {
    return (plan.has_neighbour[d][0] || plan.has_neighbour[d][1]) && !plan.own_neighbour[d];
  };
  const int slowest = plan.dims - 1;
  for (int d = 0; d < slowest; ++d)
    if (remote(d)) return {{begin, end}};
  if (!remote(slowest)) return {};
  const Box all = plan.allocated(q), owned = plan.owned(q);
  const int s = staggered(plan.spec.quantities[q].centring, slowest);  // a plane that both ranks hold lies between
  const auto low = owned.lo[slowest] + plan.spec.high[slowest] + s - all.lo[slowest];
  const auto high = owned.hi[slowest] - plan.spec.low[slowest] - s - all.lo[slowest];
  if (low >= high) return {{begin, end}};
  return {{begin, begin + static_cast<std::size_t>(low * pitch)},
          {begin + static_cast<std::size_t>(high * pitch), end}};
}

/// The bytes by which to shift a block so that its private middle, where it fills a huge page, begins on one; whole
/// small pages.
std::size_t to_huge_page(const std::vector<ByteRange>& reached) {
  if (reached.size() != 2 || reached[1].begin - reached[0].end < huge_page) return 0;
  const std::size_t middle = round_up(reached[0].end, small_page);
  return round_up(middle, huge_page) - middle;
}

}  // namespace

Storage::Storage(const Plan& plan, const std::vector<int>& slots, const Touch& touch, const Allocator& allocate,
                 bool on_device) {
  for (int n : slots)
    if (n < 1) throw UsageError("fields with " + std::to_string(n) + " slots; use at least 1");
  const int quantities = static_cast<int>(plan.spec.quantities.size());
  std::vector<std::size_t> offsets;
  std::vector<ByteRange> within_reach;
  for (int q = 0; q < quantities; ++q) {
    const Box box = plan.allocated(q);
    const int element_bytes = plan.spec.quantities[q].element_bytes;
    const Index extent{box.extent(0), box.extent(1), box.extent(2)};
    const auto stride = (on_device ? device_strides : field_strides)(extent, element_bytes);
    const auto line = on_device ? device_line : static_cast<std::int64_t>(cache_line);
    first_.push_back(blocks_.size());
    for (int s = 0; s < slots[q]; ++s) {
      // Point (0, 0, 0) at the start of a cache line, and with it every row of a field whose rows are whole lines.
      const auto lead = -(box.lo[0] * element_bytes + box.lo[1] * stride[1] + box.lo[2] * stride[2]);
      std::size_t at = staggered_offset(used_ + guard, blocks_so_far++);
      at = round_up(at, static_cast<std::size_t>(line)) + static_cast<std::size_t>((line - lead % line) % line);
      blocks_.push_back({nullptr, extent[0] * element_bytes, extent[1], extent[2], stride});
      const auto size = static_cast<std::size_t>(blocks_.back().size());
      const auto ends = [&] { return reached(plan, q, at, at + size, stride[plan.dims - 1]); };
      if (allocate) at += to_huge_page(ends());
      for (const ByteRange& range : ends()) within_reach.push_back(range);
      offsets.push_back(at);
      used_ = at + size;
    }
  }
  used_ += guard;
  memory_ = allocate ? allocate(used_, within_reach) : Memory(used_);
  views_.resize(quantities);
  for (int q = 0; q < quantities; ++q)
    for (int s = 0; s < slots[q]; ++s) {
      Block& block = blocks_[first_[q] + s];
      block.begin = memory_.data() + offsets[first_[q] + s];
      const Index low = plan.allocated(q).lo;
      SlotView view{block.begin, block.stride};
      view.origin = view.at({-low[0], -low[1], -low[2]});
      views_[q].push_back(view);
      if (touch) touch(bytes(q, s));
    }
}

std::span<std::byte> Storage::bytes(int quantity, int slot) const {
  const Block& block = blocks_[first_[quantity] + slot];
  return {block.begin, static_cast<std::size_t>(block.size())};
}

std::int64_t Storage::size() const {
  std::int64_t sum = 0;
  for (const Block& block : blocks_) sum += block.size();
  return sum;
}

template <class Visit>
bool Storage::all_gaps(Visit visit) const {
  std::byte* at = memory_.data();
  for (const Block& b : blocks_) {
    if (!b.gaps) {
      if (!visit(std::span(at, b.begin))) return false;
      at = b.begin + b.size();
      continue;
    }
    for (std::int64_t z = 0; z < b.planes; ++z)
      for (std::int64_t y = 0; y < b.rows; ++y) {
        std::byte* row = b.begin + z * b.stride[2] + y * b.stride[1];
        if (!visit(std::span(at, row))) return false;
        at = row + b.row_bytes;
      }
  }
  return visit(std::span(at, memory_.data() + used_));
}

void Storage::drop_canaries_within(int quantity) {
  const std::size_t q = static_cast<std::size_t>(quantity),
                    end = q + 1 < first_.size() ? first_[q + 1] : blocks_.size();
  for (std::size_t b = first_[q]; b < end; ++b) blocks_[b].gaps = false;
}

void Storage::set_canaries() {
  all_gaps([](std::span<std::byte> gap) { return std::fill(gap.begin(), gap.end(), canary), true; });
}

bool Storage::canaries_alive() const {
  return all_gaps([](std::span<std::byte> gap) {
    return std::all_of(gap.begin(), gap.end(), [](std::byte b) { return b == canary; });
  });
}

}  // namespace haloscope
