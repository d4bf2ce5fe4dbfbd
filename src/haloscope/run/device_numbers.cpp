#include "haloscope/run/device_numbers.hpp"

#include <utility>

#include "haloscope/reduce/combine.hpp"

namespace haloscope {

using device::Buffer;
using device::Space;

DeviceNumbers::DeviceNumbers(device::Device& device, std::span<const ReduceOp> ops, const Box& region)
    : ops_(ops),
      ops_there_(device::copied_to(device, ops.data(), ops.size_bytes())),
      all_(device, Space::device, sizeof(double) * ops.size()),
      here_(device, Space::pinned, sizeof(double) * ops.size()) {
  const auto blocks = static_cast<std::size_t>(device::pass_blocks(region));
  partials_ = Buffer(device, Space::device, sizeof(double) * ops.size() * blocks);
}

device::PassNumbers DeviceNumbers::places() const {
  return {static_cast<int>(ops_.size()), reinterpret_cast<const ReduceOp*>(ops_there_.data()),
          reinterpret_cast<double*>(partials_.data()), reinterpret_cast<double*>(all_.data())};
}

void DeviceNumbers::fetch(device::Stream& stream) {
  stream.copy(here_.data(), all_.data(), here_.size());
  fetched_ = true;
}

void DeviceNumbers::take(double* into) {
  if (!std::exchange(fetched_, false)) return;
  const auto* numbers = reinterpret_cast<const double*>(here_.data());
  for (std::size_t i = 0; i < ops_.size(); ++i) into[i] = combined(ops_[i], into[i], numbers[i]);
}

}  // namespace haloscope
