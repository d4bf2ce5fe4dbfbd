#include "haloscope/field/arrangement.hpp"

#include <atomic>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope {
namespace {

constexpr std::size_t guard = 256;  // bytes free before the first, between any two and after the last block
constexpr std::byte canary{0xC5};

// Counts blocks of the whole process, so that fields of different Arrangements start at different offsets, too.
std::atomic<std::uint64_t> blocks_so_far{0};

/// Returns the part of a block that other ranks may read or write, from the bytes between its planes (rows in 2D,
/// points in 1D): the layers of the slowest dimension next to another rank if only that dimension is split, else all
/// of it.
std::vector<ByteRange> reached_of(const Plan& plan, int q, const ByteRange& block, std::int64_t pitch) {
  const auto remote = [&](int d) {
    return (plan.has_neighbour[d][0] || plan.has_neighbour[d][1]) && !plan.own_neighbour[d];
  };
  const int slowest = plan.dims - 1;
  for (int d = 0; d < slowest; ++d)
    if (remote(d)) return {block};
  if (!remote(slowest)) return {};
  const Box all = plan.allocated(q), owned = plan.owned(q);
  const int s = staggered(plan.spec.quantities[q].centring, slowest);  // a plane that both ranks hold lies between
  const auto low = owned.lo[slowest] + plan.spec.high[slowest] + s - all.lo[slowest];
  const auto high = owned.hi[slowest] - plan.spec.low[slowest] - s - all.lo[slowest];
  if (low >= high) return {block};
  return {{block.begin, block.begin + static_cast<std::size_t>(low * pitch)},
          {block.begin + static_cast<std::size_t>(high * pitch), block.end}};
}

/// Returns the bytes, in whole small pages, by which to shift a block so that its private middle, where it fills a
/// huge page, begins on one.
std::size_t to_huge_page(const std::vector<ByteRange>& reached) {
  if (reached.size() != 2 || reached[1].begin - reached[0].end < huge_page) return 0;
  const std::size_t middle = round_up(reached[0].end, small_page);
  return round_up(middle, huge_page) - middle;
}

}  // namespace

RowPart intersect(const RowPart& row, const Box& box) {
  RowPart inside = row;
  const std::int64_t x = row.first[0], lo = std::max(x, box.lo[0]), hi = std::min(x + row.points, box.hi[0]);
  if (lo >= hi || !box.contains(Index{lo, row.first[1], row.first[2]})) {
    inside.points = 0;
    return inside;
  }
  const std::size_t element = row.bytes.size() / static_cast<std::size_t>(row.points);
  inside.first[0] = lo;
  inside.points = hi - lo;
  inside.bytes.begin += static_cast<std::size_t>(lo - x) * element;
  inside.bytes.end = inside.bytes.begin + static_cast<std::size_t>(hi - lo) * element;
  return inside;
}

Arrangement::Arrangement(const Plan& plan, const std::vector<int>& slots, bool on_device, bool shared) {
  for (int n : slots)
    if (n < 1) throw UsageError("fields with " + std::to_string(n) + " slots; use at least 1");
  for (int q = 0; q < static_cast<int>(plan.spec.quantities.size()); ++q) {
    const Box points = plan.allocated(q);
    const Box box = points.empty() ? Box{{0, 0, 0}, {1, 1, 1}} : points;  // of a rank without cells: one address
    const int element_bytes = plan.spec.quantities[q].element_bytes;
    const Index extent{box.extent(0), box.extent(1), box.extent(2)};
    const auto stride = (on_device ? device_strides : field_strides)(extent, element_bytes);
    const auto line = on_device ? device_line : static_cast<std::int64_t>(cache_line);
    const auto size =
        static_cast<std::size_t>((extent[2] - 1) * stride[2] + (extent[1] - 1) * stride[1] + extent[0] * element_bytes);
    first_.push_back(blocks_.size());
    for (int s = 0; s < slots[q]; ++s) {
      // Point (0, 0, 0) is at the start of a cache line, and with it every row of a field whose rows are whole lines.
      const auto lead = -(box.lo[0] * element_bytes + box.lo[1] * stride[1] + box.lo[2] * stride[2]);
      std::size_t at = staggered_offset(bytes_ + guard, blocks_so_far++);
      at = round_up(at, static_cast<std::size_t>(line)) + static_cast<std::size_t>((line - lead % line) % line);
      const auto ends = [&] { return reached_of(plan, q, {at, at + size}, stride[plan.dims - 1]); };
      if (shared) at += to_huge_page(ends());
      for (const ByteRange& range : ends()) reached_.push_back(range);
      blocks_.push_back({q, s, {at, at + size}, box.lo, extent[0], extent[1], extent[2], stride});
      bytes_ = at + size;
    }
  }
  bytes_ += guard;
}

std::int64_t Arrangement::size() const {
  std::int64_t sum = 0;
  for (const Block& block : blocks_) sum += static_cast<std::int64_t>(block.bytes.size());
  return sum;
}

int Arrangement::slots(int quantity) const {
  const auto q = static_cast<std::size_t>(quantity);
  return static_cast<int>((q + 1 < first_.size() ? first_[q + 1] : blocks_.size()) - first_[q]);
}

ByteRange Arrangement::range(int quantity, int slot, const Box& box) const {
  const Block& b = block(quantity, slot);
  if (box.empty()) return {b.bytes.begin, b.bytes.begin};
  const auto at = [&](const Index& p) {
    std::int64_t bytes = 0;
    for (int d = 0; d < 3; ++d) bytes += (p[d] - b.low[d]) * b.stride[d];
    return b.bytes.begin + static_cast<std::size_t>(bytes);
  };
  return {at(box.lo), at({box.hi[0] - 1, box.hi[1] - 1, box.hi[2] - 1}) + static_cast<std::size_t>(b.stride[0])};
}

Views Arrangement::views(std::byte* memory) const {
  Views views(first_.size());
  for (const Block& b : blocks_) {
    SlotView view{memory + b.bytes.begin, b.stride};
    view.origin = view.at({-b.low[0], -b.low[1], -b.low[2]});
    views[static_cast<std::size_t>(b.quantity)].push_back(view);
  }
  return views;
}

/// Returns the row that a byte is in or, where it is beyond the end of one, that row.
std::int64_t Arrangement::row_at(const Block& b, std::size_t at) {
  if (at <= b.bytes.begin) return 0;
  const auto from_first = static_cast<std::int64_t>(at - b.bytes.begin);
  const std::int64_t plane = std::min(from_first / b.stride[2], b.planes - 1);
  return plane * b.rows + std::min((from_first - plane * b.stride[2]) / b.stride[1], b.rows - 1);
}

std::size_t Arrangement::cut_before(std::size_t end) const {
  for (const Block& b : blocks_) {
    if (end <= b.bytes.begin || b.bytes.end <= end) continue;
    const std::int64_t row = row_at(b, end);
    if (b.end_of(row) <= end) return end;
    return end - (end - b.begin_of(row)) % static_cast<std::size_t>(b.stride[0]);
  }
  return end;
}

ByteRange Arrangement::cut(const ByteRange& rest, std::size_t most) const {
  if (rest.size() <= most) return rest;
  const std::size_t end = cut_before(rest.begin + most);
  if (end <= rest.begin)
    throw UsageError("fields cannot pass in parts of " + std::to_string(most) +
                     " bytes, since one of their points has more; use at least the bytes of the largest point");
  return {rest.begin, end};
}

/// Calls visit(const ByteRange&) for the bytes between and around rows, until it returns false.
template <class Visit>
bool Arrangement::all_gaps(const ByteRange& within, Visit visit) const {
  std::size_t at = within.begin;
  bool good = true;
  const auto pass = [&](const ByteRange& row) {
    const std::size_t next = std::clamp(row.begin, at, within.end);
    if (good && at < next) good = visit(ByteRange{at, next});
    at = std::clamp(row.end, at, within.end);
  };
  for (const Block& b : blocks_) {
    if (!b.gaps)
      pass(b.bytes);
    else
      each_row(b, within, [&](const RowPart& row) { pass(row.bytes); });
  }
  pass({within.end, within.end});
  return good;
}

void Arrangement::set_canaries(const ByteRange& within, std::byte* here) const {
  all_gaps(within, [&](const ByteRange& gap) {
    std::fill_n(here + (gap.begin - within.begin), gap.size(), canary);
    return true;
  });
}

bool Arrangement::canaries_alive(const ByteRange& within, const std::byte* here) const {
  return all_gaps(within, [&](const ByteRange& gap) {
    const std::byte* const first = here + (gap.begin - within.begin);
    return std::all_of(first, first + gap.size(), [](std::byte b) { return b == canary; });
  });
}

void Arrangement::drop_canaries_within(int quantity) {
  for (Block& block : blocks_)
    if (block.quantity == quantity) block.gaps = false;
}

}  // namespace haloscope
