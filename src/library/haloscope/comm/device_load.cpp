#include "haloscope/comm/device_load.hpp"

#include <vector>

#include "haloscope/comm/mpi_call.hpp"

namespace haloscope {

DeviceLoad load_of(const Node& node, const std::string& device, std::int64_t bytes) {
  struct Claim {
    char device[64] = "";
    std::int64_t bytes = 0;
  } mine;
  device.copy(mine.device, sizeof mine.device - 1);
  mine.bytes = bytes;
  std::vector<Claim> all(static_cast<std::size_t>(node.size()));
  CHECK_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node.comm()));
  DeviceLoad load;
  for (const Claim& one : all)
    if (device == one.device) load = {load.bytes + one.bytes, load.ranks + 1};
  return load;
}

}  // namespace haloscope
