// Devices imitated by the CPU, for programs and tests where there is no card: what of a driver an exchange's user
// needs. Memory of imitated devices is recognised by exchanges as that of cards is, and host transports refuse it,
// though the host could read it. Nothing here says anything about speed.
#pragma once

#include "haloscope/cxx20.hpp"

#include <cstddef>
#include <functional>

#include "haloscope/device_stream.hpp"

namespace haloscope::imitated {

/// Zeroed memory of a device, as by cudaMalloc. @param device  0, or less than HALOSCOPE_HOST_DEVICE=devices=N says.
/// @throws UsageError for a device that does not exist; Error where the system has no memory.
void* allocate(std::size_t bytes, int device = 0);
/// @throws UsageError for anything but what allocate() has returned.
void release(void* memory);
/// As cudaMemcpy does: on the default stream of device 0, in any direction; waits until it is done.
void copy(void* to, const void* from, std::size_t bytes);

/// A thread that does its work in order, as by cudaStreamCreate.
DeviceStream make_stream(int device = 0);
/// Finishes its work.
void free_stream(DeviceStream stream);
/// Give work to a stream: one of make_stream(), the one that a sweep's launch gets, or the default stream of device 0.
/// Returns at once; `kernel` runs on another thread and must not throw.
void launch(DeviceStream stream, std::function<void()> kernel);
/// Wait until a stream's work is done.
void finish(DeviceStream stream);

}  // namespace haloscope::imitated
