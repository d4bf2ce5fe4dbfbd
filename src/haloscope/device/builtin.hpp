// The back ends that may be built, and what they share.
#pragma once

#include "haloscope/device/device.hpp"

namespace haloscope::device {

#define BACKEND(name) Backend name##_backend();
#include "haloscope/device/backends.def"
#undef BACKEND

/// @throws Error: more device memory is requested than is free.
[[noreturn]] void throw_too_large(std::size_t bytes, const Info& info);

}  // namespace haloscope::device
