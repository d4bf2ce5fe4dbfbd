// Boxes of fields in the memory of a device that are overwritten by rows of the host's, all by one launch.
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
    std::vector<std::byte> row;  ///< what each row of the box is to hold
  };
  DeviceFill() = default;
  /// Waits until the rows are in the device's memory. Empty boxes are left out.
  DeviceFill(device::Device& device, const std::vector<Spot>& spots);
  /// Gives a stream the work.
  void write(device::Stream& stream) const;

 private:
  device::Device* device_ = nullptr;
  device::Buffer rows_;
  device::PieceList pieces_;
};

}  // namespace haloscope
