// The rounds of a plan and the boxes that are sent in them, common to plans and reverse plans.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "haloscope/core/panels.hpp"
#include "haloscope/extend/plan.hpp"

namespace haloscope {

/// A direction of travel.
using Offset = std::array<int, 3>;

inline Offset opposite(const Offset& v) { return {-v[0], -v[1], -v[2]}; }

/// The directions in which halos travel in one round, and the extent of a region's box across them.
struct Round {
  std::vector<Offset> directions;
  std::array<bool, 3> with_halo{};  ///< dimensions whose halo is already complete and travels along
  int number = 0;                   ///< of the first direction, among the directions of all rounds
  std::vector<int> fields;          ///< that are sent, in a plan whose quantities have separate rounds; empty: all
  bool planes =
      false;  ///< the planes that both ranks hold are sent, instead of halos: the last round of a reverse plan
};

/// The position of a round of a plan: its place among the rounds of its fields, and the field; -1: all.
struct RoundPlace {
  int step = 0, field = -1;
};
inline RoundPlace place_of(const Plan& plan, int round) {
  if (!apart(plan.spec.merge)) return {round, -1};
  const int fields = static_cast<int>(plan.spec.quantities.size()), steps = plan.rounds / fields;
  if (plan.spec.merge == Merge::serial) return {round % steps, round / steps};
  return {round / fields, round % fields};
}

/// Returns true if an outgoing message holds only cells that its rank owns, and none that copies or the messages of
/// earlier rounds bring.
inline bool holds_own_cells(const Plan& plan, const Message& message) {
  return std::all_of(message.regions.begin(), message.regions.end(),
                     [&](const Region& region) { return plan.owned(region.quantity).contains(region.box); });
}

/// Returns the cells of quantity q that an exchange sends along v (`source`), or the halo that these fill; or the
/// plane of one or of the other that both hold.
Box region_box(const Plan& plan, const Round& round, int q, const Offset& v, bool source);

/// Returns the points of a quantity that `holder` holds and that the rank at `owner` from it owns, in the holder's
/// coordinates. @param owner  zero: the holder itself.
std::vector<Box> shared_boxes(const Layout& layout, int holder, const Quantity& quantity, const Offset& owner);
/// Returns the points of a quantity that a rank owns: each point of the grid belongs to one rank, and is there once.
std::vector<Box> owned_once(const Layout& layout, int rank, const Quantity& quantity);

/// Returns the quantity of a reverse plan in which contributions of field q arrive that travel against direction
/// number `way`.
inline int landing_of(const Plan& plan, int way, int q) {
  return (way + 1) * static_cast<int>(plan.spec.quantities.size()) + q;
}
/// Appends a quantity for each field of a plan. @param owner  its member that names the field.
inline void append_for_fields(Plan& plan, int Quantity::*owner) {
  const int fields = fields_in(plan.spec);
  for (int q = 0; q < fields; ++q) {
    Quantity more = plan.spec.quantities[static_cast<std::size_t>(q)];
    more.*owner = q;
    plan.spec.quantities.push_back(more);
    if (!plan.spec.widths.empty()) plan.spec.widths.emplace_back();
  }
}
inline Box at_origin(const Box& box) { return {{0, 0, 0}, {box.extent(0), box.extent(1), box.extent(2)}}; }

/// Returns the quantities that share a message, as groups of numbers of quantities.
std::vector<std::vector<int>> message_groups(const std::vector<Quantity>& quantities, Merge merge);

/// Returns true if halos come from ranks beyond the neighbours, or around a periodic dimension more than once.
bool is_beyond(const Layout& layout, const ExchangeSpec& spec);

/// Returns true if an exchange fills halos of a rank on a side (0 low, 1 high) of dimension d.
bool fills(const Layout& layout, int rank, int d, int side, bool corners);

/// Adds the messages and copies of halos whose points come from any ranks, since they are wider than blocks or the grid
/// meets itself: one round, in which each rank sends each other one a message at most.
void add_wide_halos(Plan& plan, const Layout& layout);

/// The points of a field on a folded grid, in global coordinates. Points on the fold, and rows beyond it, are copies.
struct FoldZones {
  std::vector<Box> originals;  ///< each value is there once
  std::vector<Box> repeated;   ///< the originals with another image than themselves
};
FoldZones zones_of(const GridSpec& grid, const Quantity& quantity);
/// Returns the images of points across the fold, in global coordinates, which may lie beyond periodic edges.
Box image_across_fold(const GridSpec& grid, const Quantity& quantity, const Box& box);
/// Returns the field that field q is across a seam: itself, or another component of its vector.
int field_across(const std::vector<Quantity>& fields, int q, const Turn& turn);
/// Appends a turned field for each field and turn, and copies that change the sign of what arrives in turned fields.
void append_turned_fields(Plan& plan, const GridSpec& grid);
/// Returns true if an exchange fills a field beyond no edge but the fold.
bool fills_only_fold(const GridSpec& grid, const Quantity& quantity);
/// @throws UsageError for a request that the fold of a grid excludes.
void check_fold(const GridSpec& grid, const ExchangeSpec& spec);
/// @throws UsageError for a request that the fold or the seams of a grid exclude.
void check_meetings(const Layout& layout, const ExchangeSpec& spec);
/// Makes the plan of a redistribution from `layout`, in one round; ranks may have several blocks in both splits.
Plan make_redistribution_plan(const Layout& layout, int rank, const ExchangeSpec& spec);

/// Turns the copies of a plan into the additions of its transpose, and appends the quantities that it receives in.
/// The round of planes is the last one.
/// @throws UsageError for a field that is not made of numbers.
void make_reverse(Plan& plan, const Layout& layout, const std::vector<Round>& rounds);
/// Returns the same request without the quantities that plans add to it, for contributions and for further blocks.
ExchangeSpec as_requested(ExchangeSpec spec);

/// Makes the plan of a rank in a layout of several blocks a rank: the plans of its blocks, in which messages between
/// two ranks with the same tag are one, and those between blocks of the rank are copies.
/// @throws UsageError as make_plan() does.
Plan make_plan_of_blocks(const Layout& layout, int rank, const ExchangeSpec& spec);

}  // namespace haloscope
