#include "haloscope/runner/device_rings.hpp"

#include "haloscope/field/memory.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope {
namespace {

/// Returns copies between the boxes of a field and a buffer that holds them consecutively.
std::vector<BlockCopy> copies(const std::vector<Box>& boxes, const SlotView& view, std::byte* buffer, bool collect) {
  std::vector<BlockCopy> list;
  for (const Box& box : boxes) {
    list.push_back(collect ? region_to_buffer(view, box, buffer) : buffer_to_region(view, box, buffer));
    buffer += whole_lines(box.volume() * view.element_bytes());
  }
  return list;
}

}  // namespace

DeviceRings::DeviceRings(const Program& program, const Views& host, const Views& device, device::Device& owner)
    : program_(program), owner_(owner) {
  for (const Ring& ring : program.rings) {
    ways_.emplace_back();
    for (std::size_t slot = 0; slot < host[0].size(); ++slot)
      ways_.back().push_back(make(ring, host[0][slot], device[0][slot]));
  }
}

DeviceRings::Way DeviceRings::make(const Ring& ring, const SlotView& host, const SlotView& device) const {
  std::size_t bytes = 0;
  for (const Box& box : ring.boxes) bytes += whole_lines(box.volume() * host.stride[0]);
  Way way;
  way.pinned = device::Buffer(owner_, device::Space::pinned, bytes);
  way.packed = device::Buffer(owner_, device::Space::device, bytes);
  way.taken = owner_.event(false);
  way.host = CopyList(copies(ring.boxes, host, way.pinned.data(), ring.to_device));
  way.device = {owner_, device::cut_copies(copies(ring.boxes, device, way.packed.data(), !ring.to_device))};
  return way;
}

void DeviceRings::gather(int ring, int slot) {
  Way& way = at(ring, slot);
  way.taken->wait();
  way.host.run();
}

void DeviceRings::scatter(int ring, int slot) { at(ring, slot).host.run(); }

void DeviceRings::transfer_on(device::Stream& stream, int ring, int slot) {
  Way& way = at(ring, slot);
  const bool to_device = program_.rings[ring].to_device;
  std::byte *const to = to_device ? way.packed.data() : way.pinned.data(), *const from = to_device ? way.pinned.data()
                                                                                                   : way.packed.data();
  if (way.pinned.size() > 0) stream.copy(to, from, way.pinned.size());
  if (to_device) stream.record(*way.taken);
}

}  // namespace haloscope
