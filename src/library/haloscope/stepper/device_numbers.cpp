#include "haloscope/stepper/device_numbers.hpp"

#include <utility>

#include "haloscope/core/combine.hpp"

namespace haloscope {

using device::Buffer;
using device::Space;

DeviceNumbers::DeviceNumbers(device::Device& device, std::span<const ReduceOp> ops, const Box& region,
                             const Buffer* cell_memory)
    : ops_(ops),
      kernels_(device.kernels()),
      region_(region),
      cell_memory_(cell_memory),
      ops_there_(device::copied_to(device, ops.data(), ops.size_bytes())),
      all_(device, Space::device, sizeof(double) * ops.size()),
      here_(device, Space::pinned, sizeof(double) * ops.size()) {
  const int blocks = cell_memory != nullptr ? device::gather_blocks(region.volume()) : device::pass_blocks(region);
  partials_ = Buffer(device, Space::device, sizeof(double) * ops.size() * static_cast<std::size_t>(blocks));
}

CellNumbers DeviceNumbers::cells() const {
  if (cell_memory_ == nullptr) return {};
  CellNumbers cells{reinterpret_cast<double*>(cell_memory_->data()), region_.extent(0),
                    region_.extent(0) * region_.extent(1), region_.volume()};
  cells.first -= region_.lo[0] + region_.lo[1] * cells.row + region_.lo[2] * cells.plane;
  return cells;
}

void DeviceNumbers::gather(device::Stream& stream) const {
  kernels_.gather(stream, places(), reinterpret_cast<const double*>(cell_memory_->data()), region_.volume());
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
