// Built-in back ends, and functions that they share.
#pragma once

#include <new>

#include "haloscope/device/device.hpp"

namespace haloscope::device {

#define BACKEND(name) Backend name##_backend();
#include "haloscope/device/backends.def"
#undef BACKEND

/// @throws OutOfMemory: the requested device memory exceeds the free memory.
[[noreturn]] void throw_too_large(std::size_t bytes, const Info& info);
/// @throws OutOfMemory for pinned or mapped memory of the host.
[[noreturn]] void throw_no_pinned(std::size_t bytes);
/// Ordinary memory of the host, for operator delete with the same alignment. @throws OutOfMemory.
void* new_host_memory(std::size_t bytes);
constexpr std::align_val_t host_alignment{64};

}  // namespace haloscope::device
