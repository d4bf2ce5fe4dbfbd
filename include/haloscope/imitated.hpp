// Devices imitated by the CPU, for programs and tests on machines without a GPU: the driver functions that users of
// exchanges need. Exchanges recognise memory of imitated devices like memory of GPUs, and host transports refuse it,
// though the host could read it. Speeds measured with it mean nothing.
#pragma once

#include "haloscope/extend/cxx20.hpp"

#include <cstddef>
#include <functional>

#include "haloscope/view.hpp"

namespace haloscope::imitated {

/// Returns zeroed memory of a device, like cudaMalloc. @param device 0, or less than N of
/// HALOSCOPE_HOST_DEVICE=devices=N.
/// @throws UsageError for a device that does not exist; Error where memory is exhausted.
void* allocate(std::size_t bytes, int device = 0);
/// Frees memory. @throws UsageError for an address that allocate() has not returned.
void release(void* memory);
/// Copies like cudaMemcpy: on the default stream of device 0, in any direction; waits until the copy is done.
void copy(void* to, const void* from, std::size_t bytes);

/// Returns a stream, a thread that does its work in order, like cudaStreamCreate.
DeviceStream make_stream(int device = 0);
/// Finishes the work of a stream, then frees it.
void free_stream(DeviceStream stream);
/// Enqueues work on a stream: one of make_stream(), the one passed to a sweep's launch, or the default stream of
/// device 0. Returns immediately; `kernel` runs on another thread and must not throw.
void launch(DeviceStream stream, std::function<void()> kernel);
/// Waits until a stream's work is done.
void finish(DeviceStream stream);

}  // namespace haloscope::imitated
