#include "haloscope/stepper/stepper_device.hpp"

#include <utility>

#include "haloscope/error.hpp"
#include "haloscope/schedule.hpp"

namespace haloscope {

Choice choice_in(const MemorySpace& place, Choice choice) {
  if (place.backend.empty()) {
    if (!choice.device.empty())
      throw UsageError("the choice requests device '" + choice.device +
                       "', and the fields are in host memory; give it fields in the memory of a device, or leave the "
                       "choice's device empty");
    return choice;
  }
  if (choice.device != place.backend && choice.device != "auto")
    throw UsageError("the fields are in " + to_string(place) + ", and the choice requests " +
                     (choice.device.empty() ? "none" : "device '" + choice.device + "'") + "; set its device to '" +
                     place.backend + "' or 'auto'");
  choice.device = place.backend;
  choice.strategy = strategy_for(place, choice.strategy);
  for (auto& [stage, strategy] : choice.stage_strategies) strategy = strategy_for(place, strategy);
  return choice;
}

std::string refuse_on_device(const Candidate& candidate) {
  const Choice& choice = candidate.choice;
  const bool on_device = !choice.device.empty();
  for (const Stage& stage : candidate.step.stages) {
    for (const SweepSpec& sweep : stage.sweeps)
      if (!(on_device ? sweep.launch : sweep.run))
        return "sweep '" + sweep.name + "' has no " + (on_device ? "launch" : "run") + ", and the fields are " +
               (on_device ? "on a device" : "in host memory") + "; give it one";
  }
  if (!on_device) return "";
  if (choice.capture)
    return "graphs repeat launches as they were, and a sweep may depend on its step; leave capture out";
  if (choice.schedule->one_sweep || choice.schedule->boxed)
    return "schedule '" + choice.schedule->name +
           "' needs kernels of the library; use bulk or streams with user launches";
  return "";
}

StepperDevice::StepperDevice(std::unique_ptr<device::Device> device, const Views& views)
    : fields_(std::move(device), views), event_(fields_.device().event(false)) {}

void StepperDevice::settle() {
  device::call_even_if_lost([this] { finish(); });
}

void StepperDevice::begin(DeviceStream after) {
  fields_.device().record(after, *event_);
  for (auto& stream : fields_.streams().streams) stream->wait(*event_);
}

/// The streams have met at the end of the last program.
void StepperDevice::end(DeviceStream before) {
  fields_.streams().streams[0]->record(*event_);
  fields_.device().wait(before, *event_);
}

}  // namespace haloscope
