#include "haloscope/stepper/halo_poison.hpp"

namespace haloscope {

HaloPoison::HaloPoison(const std::vector<Quantity>& quantities, const Views& views, DeviceFields* device)
    : quantities_(quantities), views_(views), device_(device) {
  if (device != nullptr) on_device_ = std::make_unique<DevicePoison>(device->device(), quantities, views);
}

/// Writes poison. On a device it comes between the programs before and after, which begin and end with all streams
/// together.
void HaloPoison::write(int stage, int slot) {
  const std::vector<PoisonSpot>& spots = spots_[stage];
  if (!on_device_) return poison(views_, quantities_, slot, spots);
  if (!on_device_->has_spots(slot, stage)) on_device_->learn(slot, stage, spots);
  on_device_->write(*device_->streams().streams[0], slot, stage);
  device_->streams().meet();
}

std::optional<Leak> HaloPoison::find(int quantity, int slot, const Box& box) const {
  if (on_device_) return on_device_->find(*device_->streams().streams[0], quantity, slot, box);
  return find_poison(views_[quantity][slot], quantities_[quantity], box);
}

}  // namespace haloscope
