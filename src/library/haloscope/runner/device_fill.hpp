// Boxes of fields in the memory of a device that one launch overwrites by rows of the host's.
#pragma once

#include <cstddef>
#include <vector>

#include "haloscope/box.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

class DeviceFill {
 public:
  struct Spot {
    SlotView view;  ///< device memory
    Box box;
    std::vector<std::byte> row;  ///< new content of each row of the box
  };
  DeviceFill() = default;
  /// Waits until the rows are in the device's memory. Empty boxes are skipped.
  DeviceFill(device::Device& device, const std::vector<Spot>& spots);
  /// Enqueues the work on a stream.
  void write(device::Stream& stream) const;

 private:
  device::Device* device_ = nullptr;
  device::Buffer rows_;
  device::PieceList pieces_;
};

}  // namespace haloscope
