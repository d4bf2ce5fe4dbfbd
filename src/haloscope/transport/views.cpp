#include "haloscope/transport/views.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope {
namespace {

/// Whether different points have different bytes: each dimension steps over all that the closer ones reach.
bool points_are_apart(const SlotView& view, const Box& points) {
  std::array<int, 3> dims{0, 1, 2};
  std::sort(dims.begin(), dims.end(),
            [&](int a, int b) { return std::abs(view.stride[a]) < std::abs(view.stride[b]); });
  std::int64_t reach = view.element_bytes();
  for (const int d : dims) {
    if (points.extent(d) == 1) continue;
    if (std::abs(view.stride[d]) < reach) return false;
    reach += (points.extent(d) - 1) * std::abs(view.stride[d]);
  }
  return true;
}

void check_view(const SlotView& view, const LinkContext& context, int q) {
  const Quantity& quantity = context.plan->spec.quantities[static_cast<std::size_t>(q)];
  if (view.element_bytes() != quantity.element_bytes)
    throw UsageError("field '" + quantity.name + "' has points of " + std::to_string(quantity.element_bytes) +
                     " bytes, its memory points of " + std::to_string(view.element_bytes()) +
                     "; where points do not follow each other in x, say in the view how long they are");
  if (!points_are_apart(view, points_moved(*context.plan, q)))
    throw UsageError("field '" + quantity.name + "' has strides of " + std::to_string(view.stride[0]) + ", " +
                     std::to_string(view.stride[1]) + " and " + std::to_string(view.stride[2]) +
                     " bytes in x, y and z, with which some of its points share memory; pass an array of its own");
  if (context.device != nullptr && view.stride[0] != view.element_bytes())
    throw UsageError(
        "field '" + quantity.name + "' is on a device and has " + std::to_string(view.stride[0]) +
        " bytes between points that are neighbours in x; kernels of devices need them one after the other (" +
        std::to_string(view.element_bytes()) + " bytes)");
}

}  // namespace

Box landing_box(const Plan& plan, int q) {
  for (const Message& message : plan.messages)
    for (const Region& region : message.regions)
      if (region.quantity == q) return region.box;
  return {{0, 0, 0}, {1, 1, 1}};
}

Box points_moved(const Plan& plan, int q) {
  if (plan.spec.quantities[static_cast<std::size_t>(q)].lands >= 0) return landing_box(plan, q);
  const auto& edges = plan.spec.quantities[static_cast<std::size_t>(q)].edges;
  Widths low{}, high{};
  for (int d = 0; d < plan.dims; ++d) {
    if (plan.has_neighbour[d][0] || edges[d] != Edge::fixed) low[d] = plan.spec.low_of(q)[d];
    if (plan.has_neighbour[d][1] || edges[d] != Edge::fixed) high[d] = plan.spec.high_of(q)[d];
  }
  return grown(plan.owned(q), low, high);
}

void check_views(const LinkContext& context) {
  const auto& quantities = context.plan->spec.quantities;
  const Views& views = *context.views;
  if (views.size() != quantities.size())
    throw UsageError("an exchange of " + std::to_string(quantities.size()) + " fields was given the memory of " +
                     std::to_string(views.size()) + "; pass one view per field");
  for (std::size_t q = 0; q < views.size(); ++q) {
    if (views[q].empty() || views[q].size() != views[0].size())
      throw UsageError("field '" + quantities[q].name + "' has " + std::to_string(views[q].size()) +
                       " slots; every field of an exchange needs the same number, at least 1");
    for (const SlotView& view : views[q]) check_view(view, context, static_cast<int>(q));
  }
}

}  // namespace haloscope
