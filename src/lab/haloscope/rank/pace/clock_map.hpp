// The device's clock in the CPU's time: a line through two points, each measured by a ping-pong through one word
// (Vanecek 2020, section 4.3).
#pragma once

#include <cstdint>

#include "haloscope/device/device.hpp"

namespace haloscope {

/// The two clocks at the same moment.
struct ClockPoint {
  double cpu_s = 0;         ///< of now_s()
  double ticks = 0;         ///< of the device
  double precision_s = 0;   ///< most that the two can differ
  double round_trip_s = 0;  ///< of a word to the device and its answer, by the CPU
};

/// Queries a dedicated kernel for the device's clock several times; the fastest answer counts.
class ClockReader {
 public:
  /// @param yield  more threads than cores: yield the core while waiting.
  ClockReader(device::Device& device, bool yield);
  /// No other kernel of this process may wait for the CPU meanwhile. @throws Error where its kernels never answer
  /// twice.
  ClockPoint read(int times = 20);
  ClockPoint read_once();

 private:
  std::uint64_t answer();

  device::Device& device_;
  bool yield_;
  double hz_;
  device::Stay stay_;
  device::Buffer word_;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Event> end_;  // the last kernel
};

class ClockMap {
 public:
  /// @param first, last  the further apart, the better.
  ClockMap(const ClockPoint& first, const ClockPoint& last);
  /// now_s() when the device's clock read `ticks`.
  double seconds(std::uint64_t ticks) const {
    return origin_.cpu_s + (static_cast<double>(ticks) - origin_.ticks) * rate_;
  }
  double seconds_per_tick() const { return rate_; }
  double precision_s() const { return precision_s_; }

 private:
  ClockPoint origin_;
  double rate_, precision_s_;
};

}  // namespace haloscope
