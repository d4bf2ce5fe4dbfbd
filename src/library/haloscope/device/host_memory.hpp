// Memory of imitated devices: files in memory, so that other processes can map them. The process has a list of all of
// it, as a driver does.
#pragma once

#include <cstddef>

#include "haloscope/device/device.hpp"

namespace haloscope::device::host {

/// Allocates memory of a device, zeroed. @throws Error where the system has none.
void* new_memory(std::size_t bytes, int device);
/// @param handle  of any process; @param device  the owner here.
/// @throws Error where the system refuses.
void* map_memory(const MemoryHandle& handle, int device);
/// @param memory  as the two above returned it. @return its bytes.
/// @throws UsageError for anything else.
std::size_t release_memory(void* memory);
/// @throws UsageError for memory that does not begin here.
MemoryHandle handle_of(void* memory);
/// The device whose memory holds an address; -1: none.
int owner_of(const void* address);

}  // namespace haloscope::device::host
