// The load of a device by the ranks that share it.
#pragma once

#include <cstdint>
#include <string>

#include "haloscope/comm/shared_memory.hpp"

namespace haloscope {

/// The requests of a node's ranks for one device.
struct DeviceLoad {
  std::int64_t bytes = 0;
  int ranks = 0;
};

/// Returns the load of a device. Devices are identified by device::Info::id, independent of their numbers on each rank.
/// Collective over the node.
/// @param bytes  bytes that this rank requests.
DeviceLoad load_of(const Node& node, const std::string& device, std::int64_t bytes = 0);

}  // namespace haloscope
