#include "haloscope/runner/device_fill.hpp"

#include <algorithm>

#include "haloscope/field/memory.hpp"

namespace haloscope {

/// Fills a box by copies of one row, with source strides of 0.
DeviceFill::DeviceFill(device::Device& device, const std::vector<Spot>& spots) : device_(&device) {
  std::vector<std::byte> rows;
  std::vector<BlockCopy> copies;
  std::vector<std::size_t> begins;
  for (const auto& [view, box, row] : spots) {
    if (box.empty()) continue;
    begins.push_back(rows.size());
    rows.resize(rows.size() + round_up(row.size(), 16));
    std::copy(row.begin(), row.end(), rows.begin() + static_cast<std::ptrdiff_t>(begins.back()));
    BlockCopy& copy = copies.emplace_back();
    copy.to = view.at(box.lo);
    copy.row_bytes = static_cast<std::int64_t>(row.size());
    copy.rows = box.extent(1), copy.planes = box.extent(2);
    copy.to_row = view.stride[1], copy.to_plane = view.stride[2];
  }
  rows_ = device::copied_to(device, rows.data(), rows.size());
  for (std::size_t i = 0; i < copies.size(); ++i) copies[i].from = rows_.data() + begins[i];
  pieces_ = device::PieceList(device, device::cut_copies(copies));
}

void DeviceFill::write(device::Stream& stream) const { device_->kernels().copy(stream, pieces_.all()); }

}  // namespace haloscope
