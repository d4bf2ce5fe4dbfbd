// Conversion of a plan's regions to the copy engine's blocks: region to region, region to buffer, buffer to region.
#pragma once

#include <span>

#include "haloscope/extend/plan.hpp"
#include "haloscope/pack/block_copy.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// Returns a plan's copy between the views of a slot, whose points are contiguous in x.
BlockCopy block_of(const Views& views, int slot, const Copy& copy);
/// Returns the transfer that gathers `box` of such a view into `buffer`, x fastest, without gaps.
BlockCopy region_to_buffer(const SlotView& view, const Box& box, std::byte* buffer);
/// Returns the transfer that scatters `buffer`, in the layout of region_to_buffer(), into `box`.
BlockCopy buffer_to_region(const SlotView& view, const Box& box, const std::byte* buffer);

// The functions below accept views of any strides.

/// Makes the copies of own-neighbour halos of one slot, in list order (a copy may read points that an earlier one
/// wrote).
CopyList make_copies(const Views& views, int slot, std::span<const Copy> copies);
/// Makes the copies of all regions of a message between the fields of one slot and `buffer` (`message.bytes` bytes,
/// in region order).
CopyList make_pack(const Views& views, int slot, const Message& message, std::byte* buffer);
CopyList make_unpack(const Views& views, int slot, const Message& message, const std::byte* buffer);
/// The same for this rank's end of a message: packs one that it sends, unpacks one that it receives.
CopyList make_packing(const Views& views, int slot, const Message& message, std::byte* buffer);

/// Makes the copies of all regions of a message directly from the fields they are sent from into the halos they are
/// received in: `out` and `in` are the two ends of one message.
CopyList make_transfer(const Views& from, const Message& out, const Views& to, const Message& in, int slot);

/// Returns the address of the bytes of `message` if they form one gapless span in packing order, so that it can be
/// sent and received in place; otherwise nullptr.
std::byte* contiguous_span(const Views& views, int slot, const Message& message);

}  // namespace haloscope
