// The points of a periodic grid of 10 by 12 cells, which the programs under faults exchange and step.
#pragma once

#include <cstdint>

#include "haloscope/haloscope.hpp"

inline double value_of(std::int64_t x, std::int64_t y) {
  return static_cast<double>(100 * ((y + 12) % 12) + (x + 10) % 10);
}

/// Moves all values by one point in x, and adds them up.
inline void move(const haloscope::SweepArgs& args) {
  const auto from = args.read<double, 2>(0);
  const auto to = args.write<double, 2>(0);
  for (auto y = args.region.lo[1]; y < args.region.hi[1]; ++y)
    for (auto x = args.region.lo[0]; x < args.region.hi[0]; ++x) {
      to(x, y) = from(x - 1, y);
      if (args.reduced != nullptr) *args.reduced += to(x, y);
      if (args.numbers) args.numbers(x, y, 0, 0) = to(x, y);
    }
}
