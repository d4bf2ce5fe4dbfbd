#include "haloscope/transport/twosided/datatype.hpp"

#include <string>
#include <utility>
#include <vector>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

int as_count(std::int64_t points) {
  if (points > largest_count)
    throw UsageError("a region of " + std::to_string(points) +
                     " points in one dimension cannot be described by an MPI datatype, which counts up to " +
                     std::to_string(largest_count) + "; use a transport that packs, as p2p does without its options");
  return static_cast<int>(points);
}

/// Returns the predefined type of a quantity's elements: MPI libraries pack these faster than the same number of
/// bytes.
MPI_Datatype element_type(const Quantity& q) {
  const bool real = q.type == ScalarType::real;
  switch (q.element_bytes) {
    case 2:
      return real ? MPI_DATATYPE_NULL : MPI_INT16_T;
    case 4:
      return real ? MPI_FLOAT : MPI_INT32_T;
    case 8:
      return real ? MPI_DOUBLE : MPI_INT64_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

OwnedType contiguous(std::int64_t count, MPI_Datatype inner) {
  OwnedType made;
  CHECK_MPI(MPI_Type_contiguous(as_count(count), inner, made.address()));
  return made;
}

/// Returns `count` times `inner`, `stride` bytes apart. With a negative stride each has a separate offset: Open MPI
/// 4.1.4 reads single bytes of vectors that run backwards from the wrong places.
OwnedType repeated(const OwnedType& inner, std::int64_t count, std::int64_t stride) {
  OwnedType made;
  if (stride >= 0) {
    CHECK_MPI(MPI_Type_create_hvector(as_count(count), 1, stride, inner.get(), made.address()));
    return made;
  }
  std::vector<MPI_Aint> places;
  for (std::int64_t n = 0; n < count; ++n) places.push_back(n * stride);
  CHECK_MPI(MPI_Type_create_hindexed_block(as_count(count), 1, places.data(), inner.get(), made.address()));
  return made;
}

/// Returns the type of parts at their offsets.
MessageType joined(const std::vector<OwnedType>& parts, const std::vector<MPI_Aint>& offsets) {
  const std::vector<int> lengths(parts.size(), 1);
  std::vector<MPI_Datatype> types;
  for (const OwnedType& part : parts) types.push_back(part.get());
  OwnedType made;
  CHECK_MPI(MPI_Type_create_struct(as_count(static_cast<std::int64_t>(parts.size())), lengths.data(), offsets.data(),
                                   types.data(), made.address()));
  return MessageType(std::move(made));
}

/// Returns the type of one region, relative to its first point. Dimensions without gaps between them become one run:
/// MPI libraries copy a whole plane far faster than they walk its rows.
OwnedType box_type(const SlotView& view, const Box& box, const Quantity& quantity) {
  const MPI_Datatype element = element_type(quantity);
  const bool typed = element != MPI_DATATYPE_NULL;
  const std::int64_t bytes = view.element_bytes();
  std::int64_t run = 1;
  int d = 0;
  for (; d < 3 && (box.extent(d) == 1 || view.stride[d] == run * bytes); ++d) run *= box.extent(d);
  OwnedType block = contiguous(typed ? run : run * bytes, typed ? element : MPI_BYTE);
  for (; d < 3; ++d) block = repeated(block, box.extent(d), view.stride[d]);
  return block;
}

}  // namespace

MessageType::MessageType(OwnedType made) : count_(1), owned_(std::move(made)) {
  CHECK_MPI(MPI_Type_commit(owned_.address()));
  type_ = owned_.get();
}

MessageType byte_type(std::int64_t bytes, std::int64_t longest) {
  if (bytes <= longest) return {static_cast<int>(bytes), MPI_BYTE};
  // Whole chunks and a remainder; MPI-3 has no 64-bit counts.
  const OwnedType chunk = contiguous(longest, MPI_BYTE);
  std::vector<OwnedType> parts;
  parts.push_back(contiguous(bytes / longest, chunk.get()));
  parts.push_back(contiguous(bytes % longest, MPI_BYTE));
  return joined(parts, {0, static_cast<MPI_Aint>(bytes / longest * longest)});
}

MessageType record_type(int bytes) { return MessageType(contiguous(bytes, MPI_BYTE)); }

MessageType region_type(const Views& views, int slot, const Plan& plan, const Message& message) {
  std::vector<MPI_Aint> addresses;
  std::vector<OwnedType> parts;
  for (const Region& region : message.regions) {
    const SlotView& view = views[region.quantity][slot];
    CHECK_MPI(MPI_Get_address(view.at(region.box.lo), &addresses.emplace_back()));
    parts.push_back(box_type(view, region.box, plan.spec.quantities[region.quantity]));
  }
  return joined(parts, addresses);
}

}  // namespace haloscope
