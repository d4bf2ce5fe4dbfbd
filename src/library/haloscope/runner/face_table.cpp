#include "haloscope/runner/face_table.hpp"

#include <array>
#include <iterator>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"

namespace haloscope {
namespace {

device::FaceTable::Place packed(const Box& box, std::byte* at) {
  const std::int64_t row = box.extent(0), plane = row * box.extent(1);
  return {at, -(box.lo[0] + box.lo[1] * row + box.lo[2] * plane), row, plane};
}

/// Sets the entry of each direction that a halo reaches into; an ordered plan's later ones have edges and corners.
void set_halo(device::FaceTable& table, const Box& halo, const Plan& plan, std::byte* at) {
  std::array<int, 3> first{}, last{};  // 0 below the cells, 1 among them, 2 above
  for (int d = 0; d < 3; ++d) {
    first[d] = halo.lo[d] < 0 ? 0 : halo.lo[d] < plan.cells[d] ? 1 : 2;
    last[d] = halo.hi[d] <= 0 ? 0 : halo.hi[d] <= plan.cells[d] ? 1 : 2;
  }
  for (int z = first[2]; z <= last[2]; ++z)
    for (int y = first[1]; y <= last[1]; ++y)
      for (int x = first[0]; x <= last[0]; ++x) table.halo[x + 3 * y + 9 * z] = packed(halo, at);
}

}  // namespace

device::FaceTable face_table(const Plan& plan, std::int64_t element_bytes,
                             const std::function<std::byte*(int)>& place) {
  device::FaceTable table;
  for (int d = 0; d < 3; ++d) table.cells[d] = static_cast<std::int32_t>(plan.cells[d]);
  for (int id = 0; id < static_cast<int>(plan.messages.size()); ++id) {
    const Message& message = plan.messages[id];
    if (message.out && !holds_own_cells(plan, message)) continue;
    std::byte* at = place(id);
    for (const Region& region : message.regions) {
      const Box& box = region.box;
      if (!message.out) {
        set_halo(table, box, plan, at);
      } else if (table.sent_count < static_cast<int>(std::size(table.sent))) {
        auto& sent = table.sent[table.sent_count++];
        sent.place = packed(box, at);
        for (int d = 0; d < 3; ++d)
          sent.lo[d] = static_cast<std::int32_t>(box.lo[d]), sent.hi[d] = static_cast<std::int32_t>(box.hi[d]);
      } else {
        throw Error(Exit::failed, "a rank has more messages than kernels of faces can pack");
      }
      at += box.volume() * element_bytes;
    }
  }
  return table;
}

}  // namespace haloscope
