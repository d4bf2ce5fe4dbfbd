// Numbers that one sweep of a program gathers on a device for reductions, and their transfer to the host.
#pragma once

#include <span>

#include "haloscope/device/device.hpp"
#include "haloscope/sweep.hpp"

namespace haloscope {

class DeviceNumbers {
 public:
  /// @param ops  operations of the sweep's reductions, by number; must outlive this. @param region the swept cells.
  /// @param cell_memory  on the device, for these numbers of each cell, shared with other sweeps that run before or
  ///                     after this one; a user's kernel writes the numbers cell by cell. Null: passes write them.
  DeviceNumbers(device::Device& device, std::span<const ReduceOp> ops, const Box& region,
                const device::Buffer* cell_memory);

  device::PassNumbers places() const;
  /// Returns the places for each cell's numbers; none for passes.
  CellNumbers cells() const;
  /// Enqueues the combination of the numbers of cells.
  void gather(device::Stream& stream) const;
  /// Enqueues the copy of a pass's numbers to the host.
  void fetch(device::Stream& stream);
  /// Combines them with the previous numbers, once. A sweep that has launched no pass has none. The stream must have
  /// completed fetch().
  void take(double* into);

 private:
  std::span<const ReduceOp> ops_;
  const device::Kernels& kernels_;
  Box region_;
  const device::Buffer* cell_memory_;
  device::Buffer ops_there_, partials_, all_, here_;
  bool fetched_ = false;
};

}  // namespace haloscope
