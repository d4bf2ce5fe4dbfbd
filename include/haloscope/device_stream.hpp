// A stream of the caller's on a device, as its driver names it.
#pragma once

#include "haloscope/cxx20.hpp"

namespace haloscope {

/// A cudaStream_t or hipStream_t, or one of imitated.hpp. Null: the driver's default stream, whose work comes after all
/// that streams made without cudaStreamNonBlocking (or its like) have been given, and before what they are given next.
struct DeviceStream {
  void* native = nullptr;
};

}  // namespace haloscope
