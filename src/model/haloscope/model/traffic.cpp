#include "haloscope/model/traffic.hpp"

#include <algorithm>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/error.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/model/profile.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope::model {

namespace {

/// Views of the plan's fields as Storage lays them out, at addresses that are never read.
Views imagined_views(const Plan& plan) {
  Views views;
  std::intptr_t at = std::intptr_t{1} << 40;
  for (std::size_t q = 0; q < plan.spec.quantities.size(); ++q) {
    const Box box = plan.allocated(static_cast<int>(q));
    const Index extent{box.extent(0), box.extent(1), box.extent(2)};
    SlotView view{nullptr, field_strides(extent, plan.spec.quantities[q].element_bytes)};
    at += view.stride[2] * (extent[2] + 1);
    view.origin = reinterpret_cast<std::byte*>(at);
    views.push_back({view});
  }
  return views;
}

/// Contiguous runs of a box, and the distance between their begins.
struct Runs {
  std::int64_t count = 1, pitch = 0;
};

Runs runs_of(const SlotView& view, const Box& box) {
  Runs runs;
  std::int64_t length = view.stride[0] * box.extent(0);
  for (int d = 1; d < 3; ++d) {
    if (box.extent(d) > 1 && (runs.count > 1 || view.stride[d] != length)) {
      if (runs.count == 1) runs.pitch = view.stride[d];
      runs.count *= box.extent(d);
    }
    length *= box.extent(d);
  }
  return runs;
}

/// The lesser of two distances between runs, where 0 is none.
std::int64_t least_pitch(std::int64_t a, std::int64_t b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

class Sum {
 public:
  Sum(const Plan& plan, const Views& views) : plan_(plan), views_(views) {}
  void add(int quantity, const Box& box) {
    const auto q = static_cast<std::size_t>(quantity);
    bytes_ += box.volume() * plan_.spec.quantities[q].element_bytes;
    const Runs runs = runs_of(views_[q].front(), box);
    runs_ += runs.count;
    pitch_ = least_pitch(pitch_, runs.pitch);
  }
  Traffic take(bool in_place) const { return {bytes_, runs_ > 0 ? bytes_ / runs_ : 0, in_place, pitch_}; }
  bool empty() const { return runs_ == 0; }

 private:
  const Plan& plan_;
  const Views& views_;
  std::int64_t bytes_ = 0, runs_ = 0, pitch_ = 0;
};

}  // namespace

std::vector<Traffic> traffic_of_messages(const Plan& plan) {
  const Views views = imagined_views(plan);
  std::vector<Traffic> found;
  for (const Message& message : plan.messages) {
    Sum sum(plan, views);
    for (const Region& region : message.regions) sum.add(region.quantity, region.box);
    found.push_back(sum.take(contiguous_span(views, 0, message) != nullptr));
    found.back().passes_on = message.out && !holds_own_cells(plan, message);
  }
  return found;
}

std::vector<std::vector<Traffic>> traffic_of_copies(const Program& program, const Plan& plan) {
  const Views views = imagined_views(plan);
  std::vector<std::vector<Traffic>> found;
  for (const auto& copies : program.copy_sets) {
    std::vector<Sum> sums(strides, Sum(plan, views));
    for (const Copy& copy : copies) {
      if (copy.quantity < 0 || copy.quantity >= static_cast<int>(plan.spec.quantities.size()))
        throw UsageError("a copy is of quantity " + std::to_string(copy.quantity) +
                         ", which the plan does not have; give the plan that the program was made from");
      Sum alone(plan, views);
      alone.add(copy.quantity, copy.to);
      const Traffic t = alone.take(false);
      const Stride stride = stride_class(static_cast<double>(t.run_bytes), static_cast<double>(t.pitch_bytes));
      sums[static_cast<std::size_t>(stride)].add(copy.quantity, copy.to);
    }
    auto& parts = found.emplace_back();
    for (const Sum& sum : sums)
      if (!sum.empty()) parts.push_back(sum.take(false));
  }
  return found;
}

Traffic together(std::span<const Traffic> parts) {
  std::int64_t bytes = 0, runs = 0, pitch = 0;
  for (const Traffic& part : parts) {
    bytes += part.bytes;
    runs += part.run_bytes > 0 ? part.bytes / part.run_bytes : 0;
    pitch = least_pitch(pitch, part.pitch_bytes);
  }
  return {bytes, runs > 0 ? bytes / runs : 0, false, pitch};
}

}  // namespace haloscope::model
