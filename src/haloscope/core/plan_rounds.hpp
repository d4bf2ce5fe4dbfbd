// The rounds of a plan and the boxes that travel in them: what plans and reverse plans are made of.
#pragma once

#include <array>
#include <vector>

#include "haloscope/plan.hpp"

namespace haloscope {

/// A direction of travel.
using Offset = std::array<int, 3>;

inline Offset opposite(const Offset& v) { return {-v[0], -v[1], -v[2]}; }

/// The directions in which halos travel in one round, and how far the box of a region reaches across them.
struct Round {
  std::vector<Offset> directions;
  std::array<bool, 3> with_halo{};  ///< dimensions whose halo is already complete and travels along
  int number = 0;                   ///< of the first direction, among those of all rounds
  std::vector<int> fields;          ///< that travel, in a plan whose quantities are apart; empty: all
  bool planes =
      false;  ///< what travels are the planes that both ranks hold, instead of halos: the last round of a reverse plan
};

/// Where a round of a plan belongs: its place among the rounds of its fields, and the field, -1: all.
struct RoundPlace {
  int step = 0, field = -1;
};
inline RoundPlace place_of(const Plan& plan, int round) {
  if (!apart(plan.spec.merge)) return {round, -1};
  const int fields = static_cast<int>(plan.spec.quantities.size()), steps = plan.rounds / fields;
  if (plan.spec.merge == Merge::serial) return {round % steps, round / steps};
  return {round / fields, round % fields};
}

/// Cells of quantity q that an exchange sends along v (`source`), or the halo that these fill; or the plane of one or
/// of the other that both hold.
Box region_box(const Plan& plan, const Round& round, int q, const Offset& v, bool source);

/// Where contributions of field q arrive that travel against direction number `way`: a quantity of a reverse plan.
inline int landing_of(const Plan& plan, int way, int q) {
  return (way + 1) * static_cast<int>(plan.spec.quantities.size()) + q;
}
inline Box at_origin(const Box& box) { return {{0, 0, 0}, {box.extent(0), box.extent(1), box.extent(2)}}; }

/// Turn the copies of a plan into the additions of its transpose, and append the quantities that it receives in. The
/// round of planes is the last one.
/// @throws UsageError for a field that is not made of numbers.
void make_reverse(Plan& plan, const Layout& layout, const std::vector<Round>& rounds);
/// The same request without what make_reverse() has appended.
ExchangeSpec without_landings(ExchangeSpec spec);

}  // namespace haloscope
