#include "haloscope/field/field.hpp"

namespace haloscope {

Storage::Storage(const Plan& plan, const std::vector<int>& slots, const Touch& touch, const Allocator& allocate,
                 bool on_device)
    : arrangement_(plan, slots, on_device, static_cast<bool>(allocate)),
      memory_(allocate ? allocate(arrangement_.bytes(), arrangement_.reached()) : Memory(arrangement_.bytes())),
      views_(arrangement_.views(memory_.data())) {
  if (!touch) return;
  for (int q = 0; q < static_cast<int>(views_.size()); ++q)
    for (int s = 0; s < arrangement_.slots(q); ++s) touch(bytes(q, s));
}

std::span<std::byte> Storage::bytes(int quantity, int slot) const {
  const ByteRange range = arrangement_.range(quantity, slot);
  return {memory_.data() + range.begin, range.size()};
}

}  // namespace haloscope
