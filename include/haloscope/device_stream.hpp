// A caller's stream on a device, as the handle of the device's driver.
#pragma once

#include "haloscope/extend/cxx20.hpp"

namespace haloscope {

/// A cudaStream_t or hipStream_t, or one of imitated.hpp. Null: the driver's default stream, whose work comes after
/// all work enqueued before it on streams made without cudaStreamNonBlocking (or its equivalent), and before all
/// work enqueued there later.
struct DeviceStream {
  void* native = nullptr;
};

}  // namespace haloscope
