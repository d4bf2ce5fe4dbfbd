#include "haloscope/transport/views.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"
#include "haloscope/field/overlap.hpp"

namespace haloscope {

std::array<int, 3> dims_by_stride(const SlotView& view) {
  std::array<int, 3> dims{0, 1, 2};
  std::sort(dims.begin(), dims.end(),
            [&](int a, int b) { return std::abs(view.stride[a]) < std::abs(view.stride[b]); });
  return dims;
}

std::span<std::byte> memory_of(const SlotView& view, const Box& points) {
  Index first = points.lo, last = points.lo;
  for (int d = 0; d < 3; ++d) (view.stride[d] < 0 ? first : last)[d] = points.hi[d] - 1;
  return {view.at(first), view.at(last) + view.element_bytes()};
}

namespace {

/// Returns the box in which contributions of one direction arrive, in separate coordinates; one point where none
/// arrive.
Box landing_box(const Plan& plan, int q) {
  for (const Message& message : plan.messages)
    for (const Region& region : message.regions)
      if (region.quantity == q) return region.box;
  for (const Copy& copy : plan.copies)
    if (copy.quantity == q && copy.store == Store::replace) return copy.to;
  return {{0, 0, 0}, {1, 1, 1}};
}

/// Returns true if different points have different bytes: each dimension steps over the whole extent of the closer
/// ones.
bool points_are_apart(const SlotView& view, const Box& points) {
  std::int64_t reach = view.element_bytes();
  for (const int d : dims_by_stride(view)) {
    if (points.extent(d) == 1) continue;
    if (std::abs(view.stride[d]) < reach) return false;
    reach += (points.extent(d) - 1) * std::abs(view.stride[d]);
  }
  return true;
}

void check_view(const SlotView& view, const Plan& plan, int q, bool on_device) {
  const Quantity& quantity = plan.spec.quantities[static_cast<std::size_t>(q)];
  if (view.element_bytes() != quantity.element_bytes)
    throw UsageError("field '" + quantity.name + "' has points of " + std::to_string(quantity.element_bytes) +
                     " bytes, its memory points of " + std::to_string(view.element_bytes()) +
                     "; where points are not contiguous in x, set their size in the view");
  const Box points = points_moved(plan, q);
  if (points.empty()) return;
  require_apart(view, points, quantity.name);
  if (on_device && view.stride[0] != view.element_bytes())
    throw UsageError("field '" + quantity.name + "' is on a device and has " + std::to_string(view.stride[0]) +
                     " bytes between points that are neighbours in x; kernels of devices need contiguous points (" +
                     std::to_string(view.element_bytes()) + " bytes)");
  require_memory(view, quantity.name);
}

/// Returns the points of all fields in memory of callers.
std::vector<FieldPoints> points_moved(const Plan& plan, FieldViews views) {
  std::vector<FieldPoints> all;
  for (int q = 0; q < static_cast<int>(views.size()); ++q) {
    if (!plan.spec.quantities[static_cast<std::size_t>(q)].is_field() || points_moved(plan, q).empty()) continue;
    const auto& slots = views[static_cast<std::size_t>(q)];
    for (int s = 0; s < static_cast<int>(slots.size()); ++s)
      all.push_back({q, s, {slots[static_cast<std::size_t>(s)], points_moved(plan, q)}});
  }
  return all;
}

/// Returns true for two slots of the same array: slots take turns, so that another one may have the same points.
bool is_same_array_in_turn(const FieldPoints& a, const FieldPoints& b) {
  return a.slot != b.slot && a.set.view.origin == b.set.view.origin && a.set.view.stride == b.set.view.stride &&
         a.set.view.element_bytes() == b.set.view.element_bytes();
}

}  // namespace

void require_memory(const SlotView& view, const std::string& name) {
  if (view.origin == nullptr)
    throw UsageError("field '" + name + "' has a null pointer; pass the address of its first owned point");
}

void require_apart(const SlotView& view, const Box& points, const std::string& name) {
  const bool addressable = is_addressable({view, points});
  if (!addressable || !points_are_apart(view, points))
    throw UsageError("field '" + name + "' has strides of " + std::to_string(view.stride[0]) + ", " +
                     std::to_string(view.stride[1]) + " and " + std::to_string(view.stride[2]) +
                     " bytes in x, y and z, with which some of its points " +
                     (addressable ? "share memory; pass an array in which points are apart"
                                  : "lie beyond all memory; pass bytes from point to point"));
}

Box points_moved(const Plan& plan, int q) {
  const Quantity& quantity = plan.spec.quantities[static_cast<std::size_t>(q)];
  if (quantity.lands >= 0) return landing_box(plan, q);
  if (quantity.turns >= 0) return turned(points_moved(plan, quantity.turns), quantity.turn);
  if (plan.owned(q).empty()) return {};
  const ExchangeSpec::Sides sides = plan.spec.sides_of(q);
  const auto& has_neighbour = plan.block_of(q).has_neighbour;
  Widths low = sides.rows_low, high = sides.rows_high;
  for (int d = 0; d < plan.dims; ++d) {
    if (has_neighbour[d][0] || plan.edge(q, d, 0) != Edge::fixed) low[d] += sides.low[d];
    if (has_neighbour[d][1] || plan.edge(q, d, 1) != Edge::fixed) high[d] += sides.high[d];
  }
  return grown(plan.owned(q), low, high);
}

void check_views(const Plan& plan, const Views& views, bool on_device) {
  const auto& quantities = plan.spec.quantities;
  const int fields = fields_in(plan.spec);
  if (views.size() != quantities.size() && views.size() != static_cast<std::size_t>(fields))
    throw UsageError("an exchange of " + std::to_string(fields) + " fields was given the memory of " +
                     std::to_string(views.size()) + "; pass one view per field");
  for (std::size_t q = 0; q < views.size(); ++q) {
    if (views[q].empty() || views[q].size() != views[0].size())
      throw UsageError("field '" + quantities[q].name + "' has " + std::to_string(views[q].size()) +
                       " slots; every field of an exchange needs the same number, at least 1");
    for (const SlotView& view : views[q]) check_view(view, plan, static_cast<int>(q), on_device);
  }
  check_apart(plan, views);
}

void check_apart(const Plan& plan, FieldViews views) {
  const bool has_blocks = plan.spec.blocks > 1 && plan.spec.motion != Motion::redistribute;
  if (const auto both = find_sharing(points_moved(plan, views), is_same_array_in_turn))
    throw UsageError(
        name_sharing(plan.spec.quantities, *both, has_blocks ? plan.fields_of_block : 0) + " share memory, so that " +
        (plan.spec.motion == Motion::redistribute ? "points of the one would replace" : "halos of the one are") +
        " points of the other; give each array to an exchange once, and use separate memory for other "
        "fields");
}

std::string name_sharing(const std::vector<Quantity>& quantities, const std::pair<FieldPoints, FieldPoints>& both,
                         int of_block) {
  const auto& [a, b] = both;
  const auto name = [&](const FieldPoints& one) {
    const int number = of_block > 0 ? one.field % of_block : one.field;
    return "'" + quantities[static_cast<std::size_t>(one.field)].name + "'" +
           (a.slot != b.slot ? " in slot " + std::to_string(one.slot) : "") + " (number " + std::to_string(number + 1) +
           (of_block > 0 ? " of block " + std::to_string(one.field / of_block) : "") + ")";
  };
  return "fields " + name(a) + " and " + name(b);
}

}  // namespace haloscope
