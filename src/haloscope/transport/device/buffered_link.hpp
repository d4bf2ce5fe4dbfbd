// Messages between fields in device memory, by MPI: through buffers in host memory (`staged`) or straight from buffers
// in device memory (`aware`).
#pragma once

#include <memory>
#include <string>

#include "haloscope/device/device.hpp"
#include "haloscope/transport.hpp"

namespace haloscope {

/// @param transport  its name, for messages. @param host  where messages wait for MPI; Space::device: MPI takes them
///        from device memory. @throws UsageError where the fields are not a device's.
std::unique_ptr<Link> open_buffered(const LinkContext& context, const std::string& transport, device::Space host);

}  // namespace haloscope
