// Messages between fields in device memory, by MPI: through buffers in host memory (`staged`) or straight from buffers
// in device memory (`aware`).
#pragma once

#include <memory>

#include "haloscope/device/device.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

struct BufferedOptions {
  device::Space host = device::Space::pinned;  ///< where messages wait for MPI; device: MPI takes them from there
  bool words = false;                          ///< see DeviceLink::tells_by_words()
};

/// Collective. @throws UsageError where the fields are not a device's; UnavailableError, on all ranks, where words are
/// asked for and the device of any rank has none.
std::unique_ptr<Link> open_buffered(const LinkContext& context, const BufferedOptions& options);

}  // namespace haloscope
