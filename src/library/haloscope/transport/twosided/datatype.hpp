// MPI datatypes of messages: plain bytes of any 64-bit length, or regions directly in field memory.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <limits>

#include "haloscope/comm/handles.hpp"
#include "haloscope/plan.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// The maximum count in an argument of MPI calls; tests set a smaller one.
inline std::int64_t largest_count = std::numeric_limits<int>::max();

/// The buffer arguments of MPI calls. Owns the type unless it is a predefined one. Move-only.
class MessageType {
 public:
  MessageType() = default;
  MessageType(int count, MPI_Datatype predefined) : count_(count), type_(predefined) {}
  /// Commits `made` and takes ownership of it.
  explicit MessageType(OwnedType made);

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
  OwnedType owned_;
};

/// Returns the type of `bytes` contiguous bytes. More than `longest` of them (MPI counts are int) become one derived
/// contiguous type.
MessageType byte_type(std::int64_t bytes, std::int64_t longest = std::numeric_limits<int>::max());
/// Returns the type of records of `bytes` bytes, for arguments that count records.
MessageType record_type(int bytes);

/// Returns all regions of a message in one struct type with absolute 64-bit addresses, to be used with MPI_BOTTOM.
/// @throws UsageError if a region has more points in one dimension than MPI counts, possibly on this rank alone.
MessageType region_type(const Views& views, int slot, const Plan& plan, const Message& message);

}  // namespace haloscope
