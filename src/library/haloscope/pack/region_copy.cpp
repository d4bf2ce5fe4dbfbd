#include "haloscope/pack/region_copy.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace haloscope {
namespace {

/// One end of a transfer: the address of its first point, the strides of its points, and its field.
struct End {
  std::byte* at;
  std::array<std::int64_t, 3> stride;
  int field = -1;
};

End end_at(const SlotView& view, const Box& box, int field = -1) { return {view.at(box.lo), view.stride, field}; }

/// Returns the end in a buffer with the points of `extent`, x fastest.
End end_in(const std::byte* buffer, const Index& extent, std::int64_t element) {
  return {const_cast<std::byte*>(buffer), {element, element * extent[0], element * extent[0] * extent[1]}};
}

Index extent_of(const Box& box) { return {box.extent(0), box.extent(1), box.extent(2)}; }

/// The dimensions in the order in which a transfer goes over them: {within a row, over rows, over planes}.
struct Walk {
  std::array<int, 3> dims{0, 1, 2};
  bool rows = true;  ///< the points of a row are contiguous at both ends
};

/// Makes rows along a dimension whose points are contiguous at both ends, x if it is one. Else the shortest dimension
/// goes first: it takes a transfer for each of its points.
Walk walk(const End& from, const End& to, const Index& extent, std::int64_t element) {
  const auto follow = [&](int d) { return extent[d] == 1 || (from.stride[d] == element && to.stride[d] == element); };
  Walk walk;
  const auto along = std::find_if(walk.dims.begin(), walk.dims.end(), follow);
  walk.rows = along != walk.dims.end();
  const int first =
      walk.rows ? *along : static_cast<int>(std::min_element(extent.begin(), extent.end()) - extent.begin());
  walk.dims = {first, first == 0 ? 1 : 0, first == 2 ? 1 : 2};
  const auto apart = [&](int d) { return std::abs(from.stride[d]) + std::abs(to.stride[d]); };
  if (first != 0 && apart(walk.dims[1]) > apart(walk.dims[2])) std::swap(walk.dims[1], walk.dims[2]);
  return walk;
}

/// Calls `take` for the transfers of `extent` points of `element` bytes from one end to the other.
template <class Take>
void each_block(const End& from, const End& to, const Index& extent, std::int64_t element, Take take) {
  const auto [dims, rows] = walk(from, to, extent, element);
  const auto [x, y, z] = dims;
  BlockCopy copy;
  copy.row_bytes = rows ? extent[x] * element : element;
  copy.rows = extent[y];
  copy.planes = extent[z];
  copy.from_row = from.stride[y], copy.from_plane = from.stride[z];
  copy.to_row = to.stride[y], copy.to_plane = to.stride[z];
  copy.from_field = from.field, copy.to_field = to.field;
  for (std::int64_t i = 0; i < (rows ? 1 : extent[x]); ++i) {
    copy.from = from.at + i * from.stride[x];
    copy.to = to.at + i * to.stride[x];
    take(copy);
  }
}

/// Calls `take` for the transfers of a plan's copy.
template <class Take>
void each_block_of(const Views& views, int slot, const Copy& c, Take take) {
  const SlotView& view = views[static_cast<std::size_t>(c.quantity)][static_cast<std::size_t>(slot)];
  const int source = c.source >= 0 ? c.source : c.quantity;
  const SlotView& source_view = views[static_cast<std::size_t>(source)][static_cast<std::size_t>(slot)];
  const End from = end_at(source_view, c.from(), source), to = end_at(view, c.to, c.quantity);
  each_block(from, to, extent_of(c.to), view.element_bytes(), [&](BlockCopy copy) {
    copy.negated = c.negate ? static_cast<int>(view.element_bytes()) : 0;
    copy.store = c.store;
    copy.summand = c.summand;
    take(copy);
  });
}

BlockCopy only_block(const End& from, const End& to, const Index& extent, std::int64_t element) {
  BlockCopy only;
  each_block(from, to, extent, element, [&](const BlockCopy& copy) { only = copy; });
  return only;
}

/// Returns the bytes of `box` if it lies in memory without gaps, else -1.
std::int64_t gapless_bytes(const SlotView& view, const Box& box) {
  std::int64_t bytes = view.element_bytes();
  for (int d = 0; d < 3; ++d) {
    if (box.extent(d) > 1 && view.stride[d] != bytes) return -1;
    bytes *= box.extent(d);
  }
  return bytes;
}

/// A field and one of its blocks. Fields do not depend on each other, so their blocks may run field by field: then
/// the two faces of a field are adjacent in the list and run in one pass. The last field comes first: sweeps go
/// through the fields in order, so most of it is still in the cache (3 % of an exchange of four fields of 32^3
/// doubles).
using FieldBlock = std::pair<int, BlockCopy>;

CopyList by_field(std::vector<FieldBlock> blocks) {
  std::stable_sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<BlockCopy> copies;
  copies.reserve(blocks.size());
  for (const auto& [field, block] : blocks) copies.push_back(block);
  return CopyList(std::move(copies));
}

/// Makes the copies between the regions of a message and consecutive places of its buffer.
CopyList through_buffer(const Views& views, int slot, const Message& message, const std::byte* buffer, bool gathers) {
  std::vector<FieldBlock> blocks;
  for (const Region& region : message.regions) {
    const SlotView& view = views[region.quantity][slot];
    const Index extent = extent_of(region.box);
    const std::int64_t element = view.element_bytes();
    const End field = end_at(view, region.box, region.quantity), packed = end_in(buffer, extent, element);
    each_block(gathers ? field : packed, gathers ? packed : field, extent, element,
               [&](const BlockCopy& copy) { blocks.emplace_back(region.quantity, copy); });
    buffer += region.box.volume() * element;
  }
  return by_field(std::move(blocks));
}

}  // namespace

BlockCopy block_of(const Views& views, int slot, const Copy& copy) {
  BlockCopy only;
  each_block_of(views, slot, copy, [&](const BlockCopy& block) { only = block; });
  return only;
}

BlockCopy region_to_buffer(const SlotView& view, const Box& box, std::byte* buffer) {
  const Index extent = extent_of(box);
  return only_block(end_at(view, box), end_in(buffer, extent, view.element_bytes()), extent, view.element_bytes());
}

BlockCopy buffer_to_region(const SlotView& view, const Box& box, const std::byte* buffer) {
  const Index extent = extent_of(box);
  return only_block(end_in(buffer, extent, view.element_bytes()), end_at(view, box), extent, view.element_bytes());
}

CopyList make_copies(const Views& views, int slot, std::span<const Copy> copies) {
  // Landings are separate fields, and blocks of a rank have fields of their own: the order stays.
  const bool depend = std::any_of(copies.begin(), copies.end(), [&](const Copy& c) {
    return c.store == Store::add || (c.source >= 0 && std::any_of(copies.begin(), copies.end(), [&](const Copy& other) {
                                       return other.quantity == c.source;
                                     }));
  });
  std::vector<FieldBlock> blocks;
  for (const Copy& c : copies)
    each_block_of(views, slot, c, [&](const BlockCopy& block) { blocks.emplace_back(depend ? 0 : c.quantity, block); });
  return by_field(std::move(blocks));
}

CopyList make_pack(const Views& views, int slot, const Message& message, std::byte* buffer) {
  return through_buffer(views, slot, message, buffer, true);
}

CopyList make_unpack(const Views& views, int slot, const Message& message, const std::byte* buffer) {
  return through_buffer(views, slot, message, buffer, false);
}

CopyList make_packing(const Views& views, int slot, const Message& message, std::byte* buffer) {
  return through_buffer(views, slot, message, buffer, message.out);
}

CopyList make_transfer(const Views& from, const Message& out, const Views& to, const Message& in, int slot) {
  std::vector<FieldBlock> blocks;
  for (std::size_t r = 0; r < out.regions.size(); ++r) {
    const Region &source = out.regions[r], &target = in.regions[r];
    const SlotView &here = from[source.quantity][slot], &there = to[target.quantity][slot];
    each_block(end_at(here, source.box), end_at(there, target.box), extent_of(source.box), here.element_bytes(),
               [&](const BlockCopy& copy) { blocks.emplace_back(source.quantity, copy); });
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
