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

/// The predefined type of a quantity's elements: MPI libraries pack those faster than the same number of bytes.
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

/// `count` times `inner`, `stride` bytes apart. Backwards each has a place of its own: Open MPI 4.1.4 takes single bytes of
/// vectors that run backwards from the wrong places.
MPI_Datatype repeated(MPI_Datatype inner, std::int64_t count, std::int64_t stride) {
  MPI_Datatype made;
  if (stride >= 0) {
    CHECK_MPI(MPI_Type_create_hvector(as_count(count), 1, stride, inner, &made));
    return made;
  }
  std::vector<MPI_Aint> places;
  for (std::int64_t n = 0; n < count; ++n) places.push_back(n * stride);
  CHECK_MPI(MPI_Type_create_hindexed_block(as_count(count), 1, places.data(), inner, &made));
  return made;
}

/// One region, relative to its first point. The caller frees it. Dimensions without gaps between them become one run:
/// MPI libraries copy a whole plane far faster than they walk its rows.
MPI_Datatype box_type(const SlotView& view, const Box& box, const Quantity& quantity) {
  const MPI_Datatype element = element_type(quantity);
  const bool typed = element != MPI_DATATYPE_NULL;
  const std::int64_t bytes = view.element_bytes();
  std::int64_t run = 1;
  int d = 0;
  for (; d < 3 && (box.extent(d) == 1 || view.stride[d] == run * bytes); ++d) run *= box.extent(d);
  MPI_Datatype block;
  CHECK_MPI(MPI_Type_contiguous(as_count(typed ? run : run * bytes), typed ? element : MPI_BYTE, &block));
  for (; d < 3; ++d) {
    MPI_Datatype inner = block;
    block = repeated(inner, box.extent(d), view.stride[d]);
    CHECK_MPI(MPI_Type_free(&inner));
  }
  return block;
}

}  // namespace

MessageType::~MessageType() {
  if (owned_) REQUIRE_MPI(MPI_Type_free(&type_));
}

MessageType::MessageType(MessageType&& other) noexcept
    : count_(other.count_), type_(other.type_), owned_(std::exchange(other.owned_, false)) {}

MessageType& MessageType::operator=(MessageType&& other) noexcept {
  std::swap(count_, other.count_);
  std::swap(type_, other.type_);
  std::swap(owned_, other.owned_);
  return *this;
}

MessageType MessageType::owning(MPI_Datatype made) {
  CHECK_MPI(MPI_Type_commit(&made));
  MessageType result(1, made);
  result.owned_ = true;
  return result;
}

MessageType byte_type(std::int64_t bytes, std::int64_t longest) {
  if (bytes <= longest) return {static_cast<int>(bytes), MPI_BYTE};
  // Whole chunks and a rest; MPI-3 has no 64-bit counts.
  MPI_Datatype chunk, chunks, rest, made;
  CHECK_MPI(MPI_Type_contiguous(static_cast<int>(longest), MPI_BYTE, &chunk));
  CHECK_MPI(MPI_Type_contiguous(as_count(bytes / longest), chunk, &chunks));
  CHECK_MPI(MPI_Type_contiguous(static_cast<int>(bytes % longest), MPI_BYTE, &rest));
  const int lengths[2] = {1, 1};
  const MPI_Aint offsets[2] = {0, static_cast<MPI_Aint>(bytes / longest * longest)};
  const MPI_Datatype parts[2] = {chunks, rest};
  CHECK_MPI(MPI_Type_create_struct(2, lengths, offsets, parts, &made));
  for (MPI_Datatype* part : {&chunk, &chunks, &rest}) CHECK_MPI(MPI_Type_free(part));
  return MessageType::owning(made);
}

MessageType record_type(int bytes) {
  MPI_Datatype made;
  CHECK_MPI(MPI_Type_contiguous(bytes, MPI_BYTE, &made));
  return MessageType::owning(made);
}

MessageType region_type(const Views& views, int slot, const Plan& plan, const Message& message) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> parts;
  for (const Region& region : message.regions) {
    const SlotView& view = views[region.quantity][slot];
    lengths.push_back(1);
    CHECK_MPI(MPI_Get_address(view.at(region.box.lo), &addresses.emplace_back()));
    parts.push_back(box_type(view, region.box, plan.spec.quantities[region.quantity]));
  }
  MPI_Datatype made;
  CHECK_MPI(MPI_Type_create_struct(as_count(static_cast<std::int64_t>(parts.size())), lengths.data(), addresses.data(),
                                   parts.data(), &made));
  for (MPI_Datatype& part : parts) CHECK_MPI(MPI_Type_free(&part));
  return MessageType::owning(made);
}

}  // namespace haloscope
