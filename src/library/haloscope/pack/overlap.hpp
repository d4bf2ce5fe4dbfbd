// Dependencies between block copies, which a team must not run concurrently; exact where their strides agree.
#pragma once

#include "haloscope/pack/block_copy.hpp"

namespace haloscope {

/// Returns true if one of two copies writes bytes that the other reads or writes. False positives are possible, false
/// negatives are not.
/// Cost: O(planes) at most.
bool depend(const BlockCopy& a, const BlockCopy& b);

/// The same, only between different planes of the two.
bool depend_across_planes(const BlockCopy& a, const BlockCopy& b);

}  // namespace haloscope
