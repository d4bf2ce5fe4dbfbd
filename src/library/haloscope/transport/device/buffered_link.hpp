// Messages between fields in device memory, by MPI: through buffers in host memory (`staged`) or directly from
// buffers in device memory (`aware`).
#pragma once

#include <memory>

#include "haloscope/device/device.hpp"
#include "haloscope/extend/transport.hpp"

namespace haloscope {

struct BufferedOptions {
  device::Space host = device::Space::pinned;  ///< memory of messages for MPI; device: MPI sends from device memory
  bool words = false;                          ///< see DeviceLink::tells_by_words()
};

/// Collective. @throws UnavailableError, on all ranks, where words are requested and the device of any rank does not
/// support them.
std::unique_ptr<Link> open_buffered(const LinkContext& context, const BufferedOptions& options);

}  // namespace haloscope
