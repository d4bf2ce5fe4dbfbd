// How many time steps a repetition has that is to last for some time.
#pragma once

#include <cmath>
#include <cstdint>

namespace haloscope {

/// The steps to try after `tried` steps, a multiple of `depth`, took `took_s`: more of them, as long as a repetition is
/// to last `wanted_s` and did not. `tried` itself once a trial has lasted a fifth longer, so that a quicker repetition
/// still lasts long enough.
inline std::int64_t next_steps(std::int64_t tried, double took_s, double wanted_s, int depth) {
  const double enough_s = 1.2 * wanted_s;
  if (took_s >= enough_s) return tried;
  const double factor = took_s > 0.1 * enough_s ? 1.1 * enough_s / took_s : 4;  // of what is too short little is known
  const auto more = static_cast<std::int64_t>(std::ceil(static_cast<double>(tried) * factor));
  return (more + depth - 1) / depth * depth;
}

}  // namespace haloscope
