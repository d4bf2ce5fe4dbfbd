#include "haloscope/pack/region_copy.hpp"

#include <algorithm>
#include <utility>

namespace haloscope {
namespace {

BlockCopy shape(const SlotView& view, const Box& box) {
  BlockCopy copy;
  copy.row_bytes = box.extent(0) * view.stride[0];
  copy.rows = box.extent(1);
  copy.planes = box.extent(2);
  return copy;
}

void read_field(BlockCopy& copy, const SlotView& view, const Box& box) {
  copy.from = view.at(box.lo);
  copy.from_row = view.stride[1];
  copy.from_plane = view.stride[2];
}

void write_field(BlockCopy& copy, const SlotView& view, const Box& box) {
  copy.to = view.at(box.lo);
  copy.to_row = view.stride[1];
  copy.to_plane = view.stride[2];
}

/// Bytes of `box` when it lies in memory without gaps, else -1.
std::int64_t gapless_bytes(const SlotView& view, const Box& box) {
  std::int64_t bytes = view.stride[0];
  for (int d = 0; d < 3; ++d) {
    if (box.extent(d) > 1 && view.stride[d] != bytes) return -1;
    bytes *= box.extent(d);
  }
  return bytes;
}

/// Fields do not depend on each other, so their blocks may run one field after the other: then the two faces of a field
/// are neighbours in the list and run in one pass. The last field comes first: sweeps go through the fields in order,
/// so it is the one most of which is still in the cache (3 % of an exchange of four fields of 32^3 doubles).
using FieldBlock = std::pair<int, BlockCopy>;

CopyList by_field(std::vector<FieldBlock> blocks) {
  std::stable_sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<BlockCopy> copies;
  copies.reserve(blocks.size());
  for (const auto& [field, block] : blocks) copies.push_back(block);
  return CopyList(std::move(copies));
}

}  // namespace

BlockCopy region_to_region(const SlotView& view, const Box& to, const Index& shift, bool negate) {
  BlockCopy copy = shape(view, to);
  read_field(copy, view, shifted(to, shift));
  write_field(copy, view, to);
  copy.negated = negate ? static_cast<int>(view.stride[0]) : 0;
  return copy;
}

BlockCopy region_to_buffer(const SlotView& view, const Box& box, std::byte* buffer) {
  BlockCopy copy = shape(view, box);
  read_field(copy, view, box);
  copy.to = buffer;
  copy.to_row = copy.row_bytes;
  copy.to_plane = copy.row_bytes * copy.rows;
  return copy;
}

BlockCopy buffer_to_region(const SlotView& view, const Box& box, const std::byte* buffer) {
  BlockCopy copy = shape(view, box);
  copy.from = buffer;
  copy.from_row = copy.row_bytes;
  copy.from_plane = copy.row_bytes * copy.rows;
  write_field(copy, view, box);
  return copy;
}

CopyList make_copies(const Views& views, int slot, std::span<const Copy> copies) {
  std::vector<FieldBlock> blocks;
  for (const Copy& c : copies)
    blocks.emplace_back(c.quantity, region_to_region(views[c.quantity][slot], c.to, c.shift, c.negate));
  return by_field(std::move(blocks));
}

CopyList make_pack(const Views& views, int slot, const Message& message, std::byte* buffer) {
  std::vector<FieldBlock> blocks;
  for (const Region& region : message.regions) {
    const SlotView& view = views[region.quantity][slot];
    blocks.emplace_back(region.quantity, region_to_buffer(view, region.box, buffer));
    buffer += region.box.volume() * view.stride[0];
  }
  return by_field(std::move(blocks));
}

CopyList make_unpack(const Views& views, int slot, const Message& message, const std::byte* buffer) {
  std::vector<FieldBlock> blocks;
  for (const Region& region : message.regions) {
    const SlotView& view = views[region.quantity][slot];
    blocks.emplace_back(region.quantity, buffer_to_region(view, region.box, buffer));
    buffer += region.box.volume() * view.stride[0];
  }
  return by_field(std::move(blocks));
}

CopyList make_transfer(const Views& from, const Message& out, const Views& to, const Message& in, int slot) {
  std::vector<FieldBlock> blocks;
  for (std::size_t r = 0; r < out.regions.size(); ++r) {
    const Region &source = out.regions[r], &target = in.regions[r];
    BlockCopy copy = shape(from[source.quantity][slot], source.box);
    read_field(copy, from[source.quantity][slot], source.box);
    write_field(copy, to[target.quantity][slot], target.box);
    blocks.emplace_back(source.quantity, copy);
  }
  return by_field(std::move(blocks));
}

std::byte* contiguous_span(const Views& views, int slot, const Message& message) {
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  for (const Region& region : message.regions) {
    const SlotView& view = views[region.quantity][slot];
    std::byte* at = view.at(region.box.lo);
    const std::int64_t bytes = gapless_bytes(view, region.box);
    if (bytes < 0 || (begin != nullptr && at != end)) return nullptr;
    if (begin == nullptr) begin = at;
    end = at + bytes;
  }
  return begin;
}

}  // namespace haloscope
