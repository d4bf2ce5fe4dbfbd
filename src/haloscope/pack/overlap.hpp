// Whether block copies depend on each other, decided exactly where their strides agree: what a team may run at once.
#pragma once

#include "haloscope/pack/block_copy.hpp"

namespace haloscope {

/// Whether one of two copies writes bytes that the other reads or writes. May say yes needlessly, never no.
/// Cost: O(planes) at most.
bool depend(const BlockCopy& a, const BlockCopy& b);

/// The same between different planes of the two only.
bool depend_across_planes(const BlockCopy& a, const BlockCopy& b);

}  // namespace haloscope
