// What models need of plans: how messages and copies lie in memory, and the peers of ranks with equal plans.
#include "haloscope/c/bridge.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/pack/region_copy.hpp"

namespace haloscope::c {

namespace {

/// Views of the plan's fields as Storage lays them out, at addresses that nobody reads.
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

/// Stretches without gaps that a box consists of.
std::int64_t runs_of(const SlotView& view, const Box& box) {
  std::int64_t pitch = view.stride[0] * box.extent(0), runs = 1;
  for (int d = 1; d < 3; ++d) {
    if (box.extent(d) > 1 && (runs > 1 || view.stride[d] != pitch)) runs *= box.extent(d);
    pitch *= box.extent(d);
  }
  return runs;
}

class Traffic {
 public:
  explicit Traffic(const Plan& plan) : plan_(plan), views_(imagined_views(plan)) {}
  const Views& views() const { return views_; }
  void add(int quantity, const Box& box) {
    bytes_ += box.volume() * plan_.spec.quantities[quantity].element_bytes;
    runs_ += runs_of(views_[quantity].front(), box);
  }
  hs_traffic take(bool in_place) const { return {bytes_, runs_ > 0 ? bytes_ / runs_ : 0, in_place, 0}; }

 private:
  const Plan& plan_;
  Views views_;
  std::int64_t bytes_ = 0, runs_ = 0;
};

}  // namespace

}  // namespace haloscope::c

using namespace haloscope;
using namespace haloscope::c;

hs_status hs_plan_traffic(const hs_plan* plan, int32_t message, hs_traffic* traffic) {
  return guarded([&] {
    const Plan& p = needed(plan, "plan").plan;
    const int id = enumerator<int>(message, static_cast<int>(p.messages.size()), "message");
    Traffic sum(p);
    for (const Region& region : p.messages[id].regions) sum.add(region.quantity, region.box);
    needed(traffic, "traffic") = sum.take(contiguous_span(sum.views(), 0, p.messages[id]) != nullptr);
  });
}

hs_status hs_program_traffic(const hs_program* program, const hs_plan* plan, int32_t copy_set, hs_traffic* traffic) {
  return guarded([&] {
    const Program& p = needed(program, "program").program;
    const int set = enumerator<int>(copy_set, static_cast<int>(p.copy_sets.size()), "copy set");
    Traffic sum(needed(plan, "plan").plan);
    for (const Copy& copy : p.copy_sets[set]) {
      enumerator<int>(copy.quantity, static_cast<int>(plan->plan.spec.quantities.size()), "quantity");
      sum.add(copy.quantity, copy.to);
    }
    needed(traffic, "traffic") = sum.take(false);
  });
}

hs_status hs_plan_peers(const hs_layout* layout, const hs_plan* plan, int32_t count, const int32_t* ranks,
                        int32_t* peers) {
  return guarded([&] {
    const Layout& l = needed(layout, "layout").layout;
    const Plan& p = needed(plan, "plan").plan;
    check_rank(l, p.rank);
    std::vector<std::array<int, 3>> offsets;
    for (const Message& message : p.messages) {
      check_rank(l, message.peer);
      const auto from = l.coords(p.rank), to = l.coords(message.peer);
      std::array<int, 3> offset{};
      for (int d = 0; d < 3; ++d) offset[d] = to[d] - from[d] + l.ranks()[d];
      offsets.push_back(offset);
    }
    for (int32_t i = 0; i < count; ++i) {
      check_rank(l, (&needed(ranks, "ranks"))[i]);
      const auto from = l.coords(ranks[i]);
      for (std::size_t m = 0; m < offsets.size(); ++m) {
        std::array<int, 3> at{};
        for (int d = 0; d < 3; ++d) at[d] = (from[d] + offsets[m][d]) % l.ranks()[d];
        (&needed(peers, "peers"))[i * offsets.size() + m] = l.rank_at(at);
      }
    }
  });
}
