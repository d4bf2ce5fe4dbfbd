// The guard's work on fields of a device: poisons halos and searches own points on the device.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "haloscope/device/device.hpp"
#include "haloscope/field/poison.hpp"
#include "haloscope/runner/device_fill.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

class DevicePoison {
 public:
  /// @param quantities, views  of the fields; both outlive it.
  DevicePoison(device::Device& device, const std::vector<Quantity>& quantities, FieldViews views);

  /// Returns true if the spots of a slot and a number of the caller's are stored.
  bool has_spots(int slot, int number) const { return lists_.contains({slot, number}); }
  /// Stores spots, and waits until they are in the device's memory.
  void learn(int slot, int number, const std::vector<PoisonSpot>& spots);
  /// Enqueues the work that poisons them.
  void write(device::Stream& stream, int slot, int number) const;
  /// Discards the spots of a slot whose fields have moved.
  void forget(int slot);
  /// Returns the first point of a box, x first, that holds poison, like find_poison() in host memory. Waits for the
  /// stream.
  std::optional<Leak> find(device::Stream& stream, int quantity, int slot, const Box& box);

 private:
  const SlotView& view(int quantity, int slot) const { return views_[quantity][slot]; }
  Leak leak_at(device::Stream& stream, int quantity, int slot, const Index& point) const;

  device::Device& device_;
  const std::vector<Quantity>& quantities_;
  FieldViews views_;
  std::map<std::pair<int, int>, DeviceFill> lists_;
  device::Buffer ops_, partials_, all_, here_;  // of a search
};

}  // namespace haloscope
