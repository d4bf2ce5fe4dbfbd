#include "haloscope/runner/face_table.hpp"

#include <iterator>

#include "haloscope/error.hpp"

namespace haloscope {
namespace {

device::FaceTable::Place packed(const Box& box, std::byte* at) {
  const std::int64_t row = box.extent(0), plane = row * box.extent(1);
  return {at, -(box.lo[0] + box.lo[1] * row + box.lo[2] * plane), row, plane};
}

int direction_of(const Box& halo, const Plan& plan) {
  int direction = 0, weight = 1;
  for (int d = 0; d < 3; ++d, weight *= 3)
    direction += weight * (halo.hi[d] <= 0 ? 0 : halo.lo[d] < plan.cells[d] ? 1 : 2);
  return direction;
}

}  // namespace

device::FaceTable face_table(const Plan& plan, std::int64_t element_bytes,
                             const std::function<std::byte*(int)>& place) {
  device::FaceTable table;
  for (int d = 0; d < 3; ++d) table.cells[d] = static_cast<std::int32_t>(plan.cells[d]);
  for (int id = 0; id < static_cast<int>(plan.messages.size()); ++id) {
    const Message& message = plan.messages[id];
    std::byte* at = place(id);
    for (const Region& region : message.regions) {
      const Box& box = region.box;
      if (!message.out) {
        table.halo[direction_of(box, plan)] = packed(box, at);
      } else if (plan.owned(0).contains(box) && table.sent_count < static_cast<int>(std::size(table.sent))) {
        auto& sent = table.sent[table.sent_count++];
        sent.place = packed(box, at);
        for (int d = 0; d < 3; ++d)
          sent.lo[d] = static_cast<std::int32_t>(box.lo[d]), sent.hi[d] = static_cast<std::int32_t>(box.hi[d]);
      } else {
        throw Error(Exit::failed, "a message holds cells of other ranks, which kernels of faces cannot pack");
      }
      at += box.volume() * element_bytes;
    }
  }
  return table;
}

}  // namespace haloscope
