#include "haloscope/imitated.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "haloscope/device/callers_streams.hpp"
#include "haloscope/device/host_memory.hpp"
#include "haloscope/error.hpp"

namespace haloscope::imitated {

using device::host::CallersStreams;

namespace {

void check_device(int device) {
  const int devices = device::host::imitation().devices;
  if (device < 0 || device >= devices)
    throw UsageError("imitated device " + std::to_string(device) + " does not exist; there are " +
                     std::to_string(devices) + ", and HALOSCOPE_HOST_DEVICE=devices=N makes more");
}

}  // namespace

void* allocate(std::size_t bytes, int device) {
  check_device(device);
  return device::host::new_memory(bytes, device);
}

void release(void* memory) { device::host::release_memory(memory); }

void copy(void* to, const void* from, std::size_t bytes) {
  CallersStreams::of(0).enqueue({}, [=] { std::memcpy(to, from, bytes); });
  CallersStreams::of(0).finish({});
}

DeviceStream make_stream(int device) {
  check_device(device);
  return CallersStreams::of(device).make();
}

void free_stream(DeviceStream stream) {
  for (int device = 0; device < device::host::imitation().devices; ++device)
    if (CallersStreams::of(device).free(stream)) return;
  throw UsageError("imitated::free_stream() got a stream that imitated::make_stream() has not returned");
}

/// Device 0 in the calls below matters only to calls on the default stream.

void launch(DeviceStream stream, std::function<void()> kernel) {
  CallersStreams::of(0).enqueue(stream, std::move(kernel));
}

void finish(DeviceStream stream) { CallersStreams::of(0).finish(stream); }

}  // namespace haloscope::imitated
