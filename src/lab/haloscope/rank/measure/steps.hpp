// The number of time steps of a repetition with a specified time.
#pragma once

#include <cmath>
#include <cstdint>

namespace haloscope {

/// The steps to try after `tried` steps, a multiple of `depth`, took `took_s`: more of them while trials are too short
/// for a repetition of `wanted_s`. Returns `tried` once a trial has lasted a fifth longer than that, so that a quicker
/// repetition still lasts long enough.
inline std::int64_t next_steps(std::int64_t tried, double took_s, double wanted_s, int depth) {
  const double enough_s = 1.2 * wanted_s;
  if (took_s >= enough_s) return tried;
  const double factor = took_s > 0.1 * enough_s ? 1.1 * enough_s / took_s : 4;  // a short trial predicts little
  const auto more = static_cast<std::int64_t>(std::ceil(static_cast<double>(tried) * factor));
  return (more + depth - 1) / depth * depth;
}

}  // namespace haloscope
