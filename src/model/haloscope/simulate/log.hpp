// Timed logs of each rank's activities, for few ranks: runs of millions of ranks record only the ends of their rounds.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "haloscope/program.hpp"

namespace haloscope::simulate {

/// The activity of a lane. handing: the host enqueues work on a device; late: it waits for others who have not come so
/// far; travelling: for messages in flight; reducing: for a reduction that has all numbers.
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
    double at = 0, flight = 0;  ///< the time of an arrival, and the flight time of the longest message of that wait
  };
  std::vector<Received> received;
  std::vector<double> ends;  ///< of rounds
};

}  // namespace haloscope::simulate
