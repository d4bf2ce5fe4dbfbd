// The device part of a Stepper whose fields are in the memory of a device.
#pragma once

#include <memory>

#include "haloscope/choice.hpp"
#include "haloscope/stepper/device_fields.hpp"
#include "haloscope/runner/memory_space.hpp"

namespace haloscope {

/// Returns the choice for fields in such memory: its back end by name, and the strategies that `auto` represents
/// there.
/// @throws UsageError for a choice or strategies for other memory.
Choice choice_in(const MemorySpace& place, Choice choice);

/// Returns the reason why the choice cannot run on a device, beyond the rules for all choices; empty if it can.
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
  /// begin() orders later work of the device after the work already enqueued on the caller's stream; end() orders it
  /// before later work of that stream.
  void begin(DeviceStream after);
  void end(DeviceStream before);
  void finish() { fields_.streams().finish(); }
  /// Finishes the device's work, and ignores a failure of the device.
  void settle();

 private:
  DeviceFields fields_;
  std::unique_ptr<device::Event> event_;
};

}  // namespace haloscope
