// The rings between a device's block and the host's cells around it: buffers and copies, prepared per ring and slot.
#pragma once

#include <memory>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/extend/program.hpp"
#include "haloscope/pack/block_copy.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

class DeviceRings {
 public:
  /// Local. @param host, device  the fields in either memory; must outlive this object.
  DeviceRings(const Program& program, const Views& host, const Views& device, device::Device& owner);

  /// Operations of the host's lanes. They wait for a buffer that the device still reads.
  void gather(int ring, int slot);
  void scatter(int ring, int slot);
  // Operations of a stream.
  void gather_on(device::Stream& stream, int ring, int slot) { launch(stream, at(ring, slot)); }
  void transfer_on(device::Stream& stream, int ring, int slot);
  void scatter_on(device::Stream& stream, int ring, int slot) { launch(stream, at(ring, slot)); }

 private:
  struct Way {
    device::Buffer pinned, packed;
    CopyList host;                         ///< between the field and `pinned`
    device::PieceList device;              ///< between the field and `packed`
    std::unique_ptr<device::Event> taken;  ///< `pinned` has been copied to the device
  };
  Way& at(int ring, int slot) { return ways_[ring][slot]; }
  Way make(const Ring& ring, const SlotView& host, const SlotView& device) const;
  void launch(device::Stream& stream, const Way& way) const { owner_.kernels().copy(stream, way.device.all()); }

  const Program& program_;
  device::Device& owner_;
  std::vector<std::vector<Way>> ways_;  // [ring][slot]
};

}  // namespace haloscope
