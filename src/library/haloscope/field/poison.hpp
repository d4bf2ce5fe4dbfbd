// Poison: values that show where a stale halo was read. Reals hold a signalling NaN, which arithmetic propagates with
// the side of the halo that it came from; integers of 1, 2, 4 or 8 bytes hold the bytes DB with the side in the last
// four bits; other points hold the bytes DB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "haloscope/extend/both_sides.hpp"
#include "haloscope/extend/plan.hpp"
#include "haloscope/view.hpp"

namespace haloscope {

/// The bits that identify poison among numbers of 4 or 8 bytes, also after arithmetic.
struct PoisonBits {
  int bytes = 0;  ///< of a number; 0: poison cannot be identified
  std::uint64_t pattern = 0, kept = 0;
  HALOSCOPE_ON_BOTH_SIDES bool is_in(std::uint64_t value) const {
    const std::uint64_t side = value & 0xF;
    return (value & kept) == pattern && side >= 1 && side <= 6;
  }
};
PoisonBits poison_bits(const Quantity& quantity);

/// A side of a block.
struct Side {
  int dimension = 0;
  bool high = false;
  bool operator==(const Side&) const = default;
};
/// Returns "the low side in x".
std::string to_string(const Side& side);

/// Returns the side beyond which the points of a halo's box lie: of several, the side of the last dimension.
Side side_of(const Box& box, const Box& owned);

/// Writes poison into the points of a box. Cost: one store a number.
void poison(const SlotView& view, const Quantity& quantity, const Box& box, const Side& from);

/// A box of a field to be poisoned.
struct PoisonSpot {
  int quantity = 0;
  Box box;
  Side side;
};
/// The same for some boxes of the fields of a slot.
void poison(FieldViews views, const std::vector<Quantity>& quantities, int slot, const std::vector<PoisonSpot>& spots);

struct Leak {
  Index point{0, 0, 0};
  Side from;
};
/// Returns "own point (0, 3) of field 'u', globally (8, 3)," for error texts. @param first the rank's first own cell,
/// global.
std::string name_point(const Leak& leak, const Quantity& quantity, const Index& first, int dims);
/// Returns the first point of a box, x first, that holds poison, a result of arithmetic on poison, or a copy of it.
/// Numbers of 1 or 2 bytes and points that are not numbers are not checked: such values may be valid. Cost: one load
/// a number.
std::optional<Leak> find_poison(const SlotView& view, const Quantity& quantity, const Box& box);

}  // namespace haloscope
