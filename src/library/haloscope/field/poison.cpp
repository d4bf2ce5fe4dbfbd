#include "haloscope/field/poison.hpp"

#include <cstring>

namespace haloscope {
namespace {

/// Returns the poison of a type of number: `pattern`, with the side in its last four bits. `kept` are the bits that
/// arithmetic preserves and that identify it; a NaN becomes quiet, and may change its sign.
constexpr PoisonBits poison_of(Summand type) {
  switch (type) {
    case Summand::f64:
      return {8, 0x7FF4'4841'4C4F'0000, 0x7FF7'FFFF'FFFF'FFF0};
    case Summand::f32:
      return {4, 0x7FA1'0C00, 0x7FBF'FFF0};
    case Summand::i64:
      return {8, 0xDBDB'DBDB'DBDB'DBD0, 0xFFFF'FFFF'FFFF'FFF0};
    case Summand::i32:
      return {4, 0xDBDB'DBD0, 0xFFFF'FFF0};
    case Summand::i16:
      return {2, 0xDBD0, 0xFFF0};
    case Summand::i8:
      return {1, 0xD0, 0xF0};
    case Summand::none:
      break;
  }
  return {0, 0xDB, 0};
}

std::uint64_t number_of(const Side& side) { return static_cast<std::uint64_t>(1 + 2 * side.dimension + side.high); }
Side side_of_number(std::uint64_t number) { return {static_cast<int>((number - 1) / 2), (number - 1) % 2 != 0}; }

/// Calls visit(point, address) for the points of a box, x first, until it returns false.
template <class Visit>
void each_point(const SlotView& view, const Box& box, Visit visit) {
  Index p;
  for (p[2] = box.lo[2]; p[2] < box.hi[2]; ++p[2])
    for (p[1] = box.lo[1]; p[1] < box.hi[1]; ++p[1])
      for (p[0] = box.lo[0]; p[0] < box.hi[0]; ++p[0])
        if (!visit(p, view.at(p))) return;
}

template <class Bits>
void fill(const SlotView& view, const Box& box, Bits value) {
  each_point(view, box, [&](const Index&, std::byte* at) {
    for (std::int64_t b = 0; b < view.element_bytes(); b += static_cast<std::int64_t>(sizeof value))
      std::memcpy(at + b, &value, sizeof value);
    return true;
  });
}

template <class Bits>
std::optional<Leak> find(const SlotView& view, const Box& box, const PoisonBits& bits) {
  std::optional<Leak> leak;
  each_point(view, box, [&](const Index& p, const std::byte* at) {
    for (std::int64_t b = 0; b < view.element_bytes(); b += static_cast<std::int64_t>(sizeof(Bits))) {
      Bits value;
      std::memcpy(&value, at + b, sizeof value);
      if (bits.is_in(value)) leak = Leak{p, side_of_number(value & 0xF)};
    }
    return !leak;
  });
  return leak;
}

}  // namespace

std::string to_string(const Side& side) {
  return std::string("the ") + (side.high ? "high" : "low") + " side in " + "xyz"[side.dimension];
}

void poison(FieldViews views, const std::vector<Quantity>& quantities, int slot, const std::vector<PoisonSpot>& spots) {
  for (const auto& [q, box, side] : spots)
    poison(views[static_cast<std::size_t>(q)][static_cast<std::size_t>(slot)], quantities[static_cast<std::size_t>(q)],
           box, side);
}

std::string name_point(const Leak& leak, const Quantity& quantity, const Index& first, int dims) {
  std::string local, global;
  for (int d = 0; d < dims; ++d) {
    const std::string comma = d > 0 ? ", " : "";
    local += comma + std::to_string(leak.point[d]);
    global += comma + std::to_string(first[d] + leak.point[d]);
  }
  return "own point (" + local + ") of field '" + quantity.name + "', globally (" + global + "),";
}

Side side_of(const Box& box, const Box& owned) {
  for (int d = 2; d >= 0; --d) {
    if (box.hi[d] <= owned.lo[d]) return {d, false};
    if (box.lo[d] >= owned.hi[d]) return {d, true};
  }
  return {};
}

void poison(const SlotView& view, const Quantity& quantity, const Box& box, const Side& from) {
  const PoisonBits bits = poison_of(summand_of(quantity));
  const std::uint64_t value = bits.pattern | (bits.bytes > 0 ? number_of(from) : 0);
  switch (bits.bytes) {
    case 8:
      return fill(view, box, value);
    case 4:
      return fill(view, box, static_cast<std::uint32_t>(value));
    case 2:
      return fill(view, box, static_cast<std::uint16_t>(value));
    default:
      return fill(view, box, static_cast<std::uint8_t>(value));
  }
}

PoisonBits poison_bits(const Quantity& quantity) {
  const PoisonBits bits = poison_of(summand_of(quantity));
  return bits.bytes >= 4 ? bits : PoisonBits{};
}

std::optional<Leak> find_poison(const SlotView& view, const Quantity& quantity, const Box& box) {
  const PoisonBits bits = poison_bits(quantity);
  if (bits.bytes == 8) return find<std::uint64_t>(view, box, bits);
  if (bits.bytes == 4) return find<std::uint32_t>(view, box, bits);
  return std::nullopt;
}

}  // namespace haloscope
