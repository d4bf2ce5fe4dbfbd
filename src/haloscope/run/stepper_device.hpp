// What a Stepper does where its fields are in the memory of a device.
#pragma once

#include <memory>

#include "haloscope/choice.hpp"
#include "haloscope/run/device_fields.hpp"
#include "haloscope/runner/memory_space.hpp"

namespace haloscope {

/// The choice for fields in such memory: its back end by name, and the strategies that `auto` stands for there.
/// @throws UsageError for a choice that is for other memory, and for strategies that are.
Choice choice_in(const MemorySpace& place, Choice choice);

/// Why the choice cannot be carried out on a device, beyond what makes any choice illegal; empty when it can.
std::string refuse_on_device(const Candidate& candidate);

/// A device with the caller's fields, and the order between its work and that of the caller's streams.
class StepperDevice {
 public:
  StepperDevice(std::unique_ptr<device::Device> device, const Views& views);
  ~StepperDevice() { settle(); }
  StepperDevice(const StepperDevice&) = delete;
  StepperDevice& operator=(const StepperDevice&) = delete;

  DeviceFields& fields() { return fields_; }
  device::Device* device() { return &fields_.device(); }
  /// What is given to it later comes after what the caller's stream has been given, or before what that is given later.
  void begin(DeviceStream after);
  void end(DeviceStream before);
  void finish() { fields_.streams().finish(); }
  /// The same for the end: a device that has failed does not matter any more.
  void settle();

 private:
  DeviceFields fields_;
  std::unique_ptr<device::Event> event_;
};

}  // namespace haloscope
