// The pace of a machine, and profiles at another pace than the calibrated one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace haloscope::model {

struct Profile;

/// The kernels that a pace has the time of: arithmetic in the innermost cache, a stream through memory, a small and a
/// large message to the neighbour on the node, and the same to another node.
enum class PaceKind : std::uint8_t { compute, memory, latency, bandwidth, far_latency, far_bandwidth };
constexpr int pace_kinds = static_cast<int>(PaceKind::far_bandwidth) + 1;
const char* to_string(PaceKind kind);

/// Seconds of a fixed kernel, and their relative standard error.
struct PaceTime {
  double seconds = 0, error = 0;
};

/// The speed of a machine: the times of fixed kernels, run by a number of ranks concurrently.
struct Pace {
  int ranks = 1;
  std::array<std::optional<PaceTime>, pace_kinds> times;
};

/// By PaceKind: seconds at one pace over seconds at another; above 1: slower. 1 where a kind is not known at both.
using PaceRatios = std::array<double, pace_kinds>;

/// A ratio within its error counts as none: the logarithm shrinks by the factor max(0, 1 - error^2 / logarithm^2).
/// Source: James and Stein 1961, positive part.
PaceRatios pace_ratios(const Pace& then, const Pace& now);

/// The profile of the same machine at another pace: of the machine's state whose pace is closest, every cost in
/// proportion to the kernel that resembles it.
/// @throws UnavailableError when the profile has no pace with this number of ranks.
Profile at_pace(const Profile& profile, const Pace& now);

/// @param json  the `pace` of a record. @throws UsageError for anything else.
Pace pace_from_json(const std::string& json);

}  // namespace haloscope::model
