// Which ranks share a device.
#pragma once

#include <cstdint>
#include <string>

#include "haloscope/comm/shared_memory.hpp"

namespace haloscope {

/// What the ranks of a node want of one device.
struct DeviceLoad {
  std::int64_t bytes = 0;
  int ranks = 0;
};

/// Devices are told apart by device::Info::id, whatever number each rank gives them. Collective over the node.
/// @param bytes  what this rank wants.
DeviceLoad load_of(const Node& node, const std::string& device, std::int64_t bytes = 0);

}  // namespace haloscope
