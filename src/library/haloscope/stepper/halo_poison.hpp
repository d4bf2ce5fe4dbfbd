// Poison in the halos of stages, on the host or on a device.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "haloscope/field/poison.hpp"
#include "haloscope/runner/device_poison.hpp"
#include "haloscope/stepper/device_fields.hpp"

namespace haloscope {

class HaloPoison {
 public:
  /// @param quantities, views of the fields. @param device the fields on a device; null: host memory. All outlive
  ///                    this object.
  HaloPoison(const std::vector<Quantity>& quantities, const Views& views, DeviceFields* device);

  /// Stores the spots of the next stage, so that steps allocate nothing.
  void add(std::vector<PoisonSpot> spots) { spots_.push_back(std::move(spots)); }
  /// Poisons the spots of a stage in the fields of a slot. Local; cost: one store for each number in them.
  void write(int stage, int slot);
  /// Returns the result of find_poison(). On a device it waits for the search.
  std::optional<Leak> find(int quantity, int slot, const Box& box) const;

 private:
  const std::vector<Quantity>& quantities_;
  const Views& views_;
  std::vector<std::vector<PoisonSpot>> spots_;  // by stage
  DeviceFields* device_;
  std::unique_ptr<DevicePoison> on_device_;  // null: host memory
};

}  // namespace haloscope
