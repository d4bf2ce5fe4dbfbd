// What each rank of a run did when, for few ranks: millions of them keep only when their rounds ended.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "haloscope/program.hpp"

namespace haloscope::simulate {

/// What a lane does. late: it waits for others who have not come so far; travelling: for messages that are under way;
/// reducing: for a reduction that has all numbers.
enum class Activity : std::uint8_t { working, handing, late, travelling, reducing };

/// op: PricedOp::number.
struct Interval {
  double begin = 0, end = 0;
  std::int32_t op = 0;
  Activity doing = Activity::working;
};

struct Log {
  std::array<std::vector<Interval>, lane_count> lanes;  ///< by Lane, in order of time
  struct Received {
    double at = 0, flight = 0;  ///< when, and how long the longest message that was waited for travelled
  };
  std::vector<Received> received;
  std::vector<double> ends;  ///< of rounds
};

}  // namespace haloscope::simulate
