// What one sweep of a program gathers on a device for reductions, and its way to the host.
#pragma once

#include <span>

#include "haloscope/device/device.hpp"

namespace haloscope {

class DeviceNumbers {
 public:
  /// @param ops  of the sweep's reductions, number by number; it must outlive this. @param region  the cells swept.
  DeviceNumbers(device::Device& device, std::span<const ReduceOp> ops, const Box& region);

  device::PassNumbers places() const;
  /// Enqueues what brings a pass' numbers to the host.
  void fetch(device::Stream& stream);
  /// Combines them with those of before, once. A sweep that has launched no pass has none. The stream must have come
  /// past fetch().
  void take(double* into);

 private:
  std::span<const ReduceOp> ops_;
  device::Buffer ops_there_, partials_, all_, here_;
  bool fetched_ = false;
};

}  // namespace haloscope
