// What one sweep of a program gathers on a device for reductions, and its way to the host.
#pragma once

#include <span>

#include "haloscope/device/device.hpp"
#include "haloscope/sweep.hpp"

namespace haloscope {

class DeviceNumbers {
 public:
  /// @param ops  of the sweep's reductions, number by number; it must outlive this. @param region  the cells swept.
  /// @param given   device memory for as many numbers of each cell, which it shares with others that work after or
  ///                before it: they come cell by cell, from a kernel of the user's. Null: they come from passes.
  DeviceNumbers(device::Device& device, std::span<const ReduceOp> ops, const Box& region, const device::Buffer* given);

  device::PassNumbers places() const;
  /// Where each cell's are to be; none of passes.
  CellNumbers cells() const;
  /// Enqueues what combines those of cells.
  void gather(device::Stream& stream) const;
  /// Enqueues what brings a pass' numbers to the host.
  void fetch(device::Stream& stream);
  /// Combines them with those of before, once. A sweep that has launched no pass has none. The stream must have come
  /// past fetch().
  void take(double* into);

 private:
  std::span<const ReduceOp> ops_;
  const device::Kernels& kernels_;
  Box region_;
  const device::Buffer* given_;
  device::Buffer ops_there_, partials_, all_, here_;
  bool fetched_ = false;
};

}  // namespace haloscope
