// Compute times of poisson2d by block of lines, to find blocks that their data slow down (Schroeter 2021, section 5.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace haloscope {

/// Processor seconds of computing by block of lines and window of iterations, and the subnormal numbers that slow it
/// down: finds ranks slowed by their data.
struct WorkMeter {
  int blocks = 0;                 ///< even blocks of the grid's lines, as N ranks would own them; 0: no metering
  std::int64_t window = 100;      ///< iterations
  std::int64_t lines = 1;         ///< of the whole grid
  std::vector<double> seconds;    ///< [window][block], this rank's part
  std::vector<double> subnormal;  ///< numbers after the last iteration of each full window, likewise

  int block_of(std::int64_t line) const;
  std::int64_t first_line(int block) const;
  void add(std::int64_t iteration, int block, double seconds);
  /// Counts numbers in `values` if sweeps of `levels` iterations from `iteration` on end a window.
  void count(std::int64_t iteration, int levels, int block, std::span<const double> values);
};

/// Returns the number of subnormal values, also while they are taken as zero. Cost: reads `values`.
std::int64_t count_subnormal(std::span<const double> values);

/// Returns the processor time of the calling thread in seconds, without the time of other threads on the same core.
double work_s();

}  // namespace haloscope
