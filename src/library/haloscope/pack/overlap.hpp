// Dependencies between block copies, which a team must not run concurrently; exact where their strides agree.
#pragma once

#include <cstdint>

#include "haloscope/pack/block_copy.hpp"

namespace haloscope {

/// The bytes from the first to the last that a copy accesses on one side.
struct Reach {
  std::intptr_t begin, end;
};
Reach read_reach(const BlockCopy& copy);
Reach written_reach(const BlockCopy& copy);

/// Returns true if one of two copies writes bytes that the other reads or writes. False positives are possible, false
/// negatives are not.
/// Cost: O(planes) at most.
bool depend(const BlockCopy& a, const BlockCopy& b);

/// The same, only between different planes of the two.
bool depend_across_planes(const BlockCopy& a, const BlockCopy& b);

/// The same, only between planes of `a` and earlier planes of `b`. Where false, the two may run together, plane by
/// plane, in place of sequentially.
bool depend_on_earlier_planes(const BlockCopy& a, const BlockCopy& b);

/// The same for rows in one plane.
bool depend_on_earlier_rows(const BlockCopy& a, const BlockCopy& b);

/// Returns true if the bytes that two copies read, or write, interleave, as in copies of one field. Only then do they
/// share cache lines.
bool same_field(const BlockCopy& a, const BlockCopy& b);

}  // namespace haloscope
