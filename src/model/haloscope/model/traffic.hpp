// The layout of the bytes of messages and copies in a field with Haloscope's strides.
#pragma once

#include <span>

#include "haloscope/extend/program.hpp"

namespace haloscope::model {

struct Traffic {
  std::int64_t bytes = 0;
  std::int64_t run_bytes = 0;    ///< mean length of a contiguous run
  bool in_place = false;         ///< a message that is one contiguous run and needs no packing
  std::int64_t pitch_bytes = 0;  ///< min distance from the begin of a run to the begin of the next, 0: there is one
  bool passes_on = false;        ///< an outgoing message with cells that copies or earlier messages bring
};

/// The traffic of all messages of a plan, in its order.
std::vector<Traffic> traffic_of_messages(const Plan& plan);
/// The traffic of all copy sets of a program that was made from `plan`: copies of a set whose runs are of one class
/// (`stride_class`) together. A mean over rows of lines and of single cells would be neither.
/// @throws UsageError for a copy of a quantity that the plan does not have.
std::vector<std::vector<Traffic>> traffic_of_copies(const Program& program, const Plan& plan);
/// Several as one.
Traffic together(std::span<const Traffic> parts);

}  // namespace haloscope::model
