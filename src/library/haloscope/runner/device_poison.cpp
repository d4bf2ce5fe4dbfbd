#include "haloscope/runner/device_poison.hpp"

#include <cmath>

namespace haloscope {

using device::Buffer;
using device::Space;

DevicePoison::DevicePoison(device::Device& device, const std::vector<Quantity>& quantities, FieldViews views)
    : device_(device),
      quantities_(quantities),
      views_(views),
      all_(device, Space::device, sizeof(double)),
      here_(device, Space::pinned, sizeof(double)) {
  const ReduceOp least = ReduceOp::min;
  ops_ = device::copied_to(device, &least, sizeof least);
}

void DevicePoison::learn(int slot, int number, const std::vector<PoisonSpot>& spots) {
  std::vector<DeviceFill::Spot> rows;
  for (const PoisonSpot& spot : spots) {
    const SlotView& field = view(spot.quantity, slot);
    const std::int64_t bytes = spot.box.extent(0) * field.element_bytes();
    rows.push_back({field, spot.box, std::vector<std::byte>(static_cast<std::size_t>(bytes))});
    poison({rows.back().row.data(), {field.element_bytes(), bytes, bytes}, field.element_bytes()},
           quantities_[spot.quantity], {{0, 0, 0}, {spot.box.extent(0), 1, 1}}, spot.side);
  }
  lists_.insert_or_assign({slot, number}, DeviceFill(device_, rows));
}

void DevicePoison::write(device::Stream& stream, int slot, int number) const {
  lists_.at({slot, number}).write(stream);
}

void DevicePoison::forget(int slot) {
  std::erase_if(lists_, [slot](const auto& list) { return list.first.first == slot; });
}

std::optional<Leak> DevicePoison::find(device::Stream& stream, int quantity, int slot, const Box& box) {
  const PoisonBits bits = poison_bits(quantities_[quantity]);
  if (bits.bytes == 0 || box.empty()) return std::nullopt;
  const SlotView& field = view(quantity, slot);
  device::PoisonSearch search;
  search.first = field.at(box.lo);
  search.row = field.stride[1], search.plane = field.stride[2];
  for (int d = 0; d < 3; ++d) search.extent[d] = box.extent(d);
  search.point = static_cast<std::int32_t>(field.element_bytes());
  search.bits = bits;
  const std::size_t bytes = sizeof(double) * static_cast<std::size_t>(device::gather_blocks(box.volume()));
  if (partials_.size() < bytes) partials_ = Buffer(device_, Space::device, bytes);
  search.found = {1, reinterpret_cast<const ReduceOp*>(ops_.data()), reinterpret_cast<double*>(partials_.data()),
                  reinterpret_cast<double*>(all_.data())};
  device_.kernels().find_poison(stream, search);
  stream.copy(here_.data(), all_.data(), sizeof(double));
  stream.finish();
  const double place = *reinterpret_cast<const double*>(here_.data());
  if (!std::isfinite(place)) return std::nullopt;
  const auto number = static_cast<std::int64_t>(place), line = number / box.extent(0), z = line / box.extent(1);
  return leak_at(stream, quantity, slot,
                 {box.lo[0] + number - line * box.extent(0), box.lo[1] + line - z * box.extent(1), box.lo[2] + z});
}

Leak DevicePoison::leak_at(device::Stream& stream, int quantity, int slot, const Index& point) const {
  const std::int64_t bytes = view(quantity, slot).element_bytes();
  std::vector<std::byte> here(static_cast<std::size_t>(bytes));
  stream.copy(here.data(), view(quantity, slot).at(point), here.size());
  stream.finish();
  const auto leak =
      find_poison({here.data(), {bytes, bytes, bytes}, bytes}, quantities_[quantity], {{0, 0, 0}, {1, 1, 1}});
  return {point, leak ? leak->from : Side{}};
}

}  // namespace haloscope
