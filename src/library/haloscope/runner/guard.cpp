#include "haloscope/runner/guard.hpp"

#include <algorithm>
#include <string>

#include "haloscope/error.hpp"

namespace haloscope {
namespace {

std::string layers(int count) { return std::to_string(count) + (count == 1 ? " layer" : " layers"); }

}  // namespace

Guard::There::There(device::Device& on, const std::vector<Quantity>& quantities, FieldViews views)
    : device(on), poison(on, quantities, views), stream(on.stream(true)), event(on.event(false)) {}

void Guard::There::begin(DeviceStream after) {
  device.record(after, *event);
  stream->wait(*event);
}

Guard::Guard(const Layout& layout, const Plan& plan, FieldViews views, device::Device* device)
    : plan_(plan),
      views_(views),
      fields_(static_cast<int>(views.size())),
      fresh_(views.size() * views.front().size()),
      last_(views.front().size()) {
  for (int block = 0; block < plan.spec.blocks; ++block)
    first_.push_back(layout.owns_cells(plan.rank) ? layout.by_block().owned(layout.first_block(plan.rank) + block).lo
                                                  : Index{});
  const auto add = [&](const Region& region) {
    halos_.push_back({region.quantity, region.box, side_of(region.box, plan.owned(region.quantity))});
  };
  for (const Message& message : plan.messages)
    for (const Region& region : message.regions)
      if (!message.out) add(plan.in_field(region));
  for (const Copy& copy : plan.copies) add(plan.in_field({copy.quantity, copy.to}));
  find_stale();
  if (device == nullptr) return;
  const device::Current current(device);
  there_ = std::make_unique<There>(*device, plan.spec.quantities, views);
}

/// Returns true if an exchange fills halos of a field on a side on any rank; equal on all.
bool Guard::is_filled(int q, int d, int side) const {
  const bool beyond = plan_.spec.quantities[q].edges[d].of(side) != Edge::fixed;
  return d < plan_.dims && (plan_.split[d] || plan_.own_neighbour[d] || beyond || plan_.joined[d][side]);
}

int Guard::width(int q, int d, int side) const { return (side == 0 ? plan_.spec.low_of(q) : plan_.spec.high_of(q))[d]; }

template <class Change>
void Guard::for_fields(int slot, const std::vector<int>& fields, const std::vector<ExchangeSpec::Sides>& layers,
                       const Change& change) {
  const int each = fields_ / plan_.spec.blocks;
  for (int block = 0; block < plan_.spec.blocks; ++block)
    for (std::size_t i = 0; i < fields.size(); ++i) change(fresh(slot, block * each + fields[i]), layers[i]);
}

void Guard::filled(int slot, const std::vector<int>& fields, const std::vector<ExchangeSpec::Sides>& layers) {
  last_[slot] = ++exchanges_;
  for_fields(slot, fields, layers, [](Layers& fresh, const ExchangeSpec::Sides& now) {
    for (int d = 0; d < 3; ++d) {
      auto& [low, high] = fresh[d];
      low = std::max(low, now.low[d]);
      high = std::max(high, now.high[d]);
    }
  });
}

void Guard::overwritten(int slot, const std::vector<int>& fields, const std::vector<ExchangeSpec::Sides>& layers) {
  for_fields(slot, fields, layers, [](Layers& fresh, const ExchangeSpec::Sides& now) {
    for (int d = 0; d < 3; ++d) {
      auto& [low, high] = fresh[d];
      if (now.low[d] > 0) low = 0;
      if (now.high[d] > 0) high = 0;
    }
  });
}

void Guard::age(int slot, int layers_left) {
  for (int q = 0; q < fields_; ++q)
    for (auto& sides : fresh(slot, q))
      for (int& count : sides) count = std::min(count, layers_left);
}

void Guard::moved(int slot) {
  age(slot, 0);
  if (there_) there_->poison.forget(slot);
}

/// Stores the stale parts of halos for any number of fresh layers, so that changed() allocates nothing.
void Guard::find_stale() {
  int most = 0;
  for (int q = 0; q < fields_; ++q)
    for (int d = 0; d < plan_.dims; ++d)
      for (int side : {0, 1}) most = std::max(most, width(q, d, side));
  stale_.resize(static_cast<std::size_t>(most) + 1);
  for (int layers_left = 0; layers_left < most; ++layers_left) {
    const Widths kept{layers_left, layers_left, layers_left};
    for (const Halo& halo : halos_)
      for (const Box& part : subtract(halo.box, grown(plan_.owned(halo.quantity), kept, kept)))
        stale_[layers_left].push_back({halo.quantity, part, halo.side});
  }
}

const std::vector<PoisonSpot>& Guard::stale(int layers_left) const {
  return stale_[std::min(static_cast<std::size_t>(layers_left), stale_.size() - 1)];
}

void Guard::changed(int slot, int layers_left, DeviceStream after, bool waits) {
  if (layers_left < 0)
    throw UsageError("changed() got " + std::to_string(layers_left) + " fresh layers; pass 0 or more");
  age(slot, layers_left);
  if (!there_) return poison(views_, plan_.spec.quantities, slot, stale(layers_left));
  const device::Current current(&there_->device);
  if (!there_->poison.has_spots(slot, layers_left)) there_->poison.learn(slot, layers_left, stale(layers_left));
  there_->begin(after);
  there_->poison.write(*there_->stream, slot, layers_left);
  if (waits) return there_->stream->finish();
  there_->stream->record(*there_->event);
  there_->device.wait(after, *there_->event);
}

std::string Guard::last_exchange(int slot) const {
  const std::int64_t last = last_[slot];
  return last == 0 ? "it has never been exchanged" : "its last exchange was number " + std::to_string(last);
}

void Guard::require_fresh(int depth, int slot) const {
  for (int q = 0; q < fields_; ++q)
    for (int d = 0; d < plan_.dims; ++d)
      for (int side : {0, 1}) {
        const int found = fresh(slot, q)[d][side], filled = width(q, d, side);
        if (found >= depth || filled == 0 || !is_filled(q, d, side)) continue;
        throw UsageError("the halo of field '" + plan_.spec.quantities[q].name + "' in slot " + std::to_string(slot) +
                         " is stale on " + to_string(Side{d, side == 1}) + ": " + layers(depth) + " requested, " +
                         std::to_string(found) + " fresh; " + last_exchange(slot) +
                         (filled < depth ? ", which fills " + std::to_string(filled) + "; give it a wider halo"
                                         : "; exchange it after its points have changed and before its halo is read"));
      }
}

std::optional<Leak> Guard::find(int q, int slot) const {
  const Quantity& quantity = plan_.spec.quantities[q];
  if (there_) return there_->poison.find(*there_->stream, q, slot, plan_.owned(q));
  return find_poison(views_[q][slot], quantity, plan_.owned(q));
}

void Guard::check_clean(int slot, DeviceStream after) const {
  const device::Current current(there_ ? &there_->device : nullptr);
  if (there_) there_->begin(after);
  for (int q = 0; q < fields_; ++q) {
    const Quantity& quantity = plan_.spec.quantities[q];
    const auto leak = find(q, slot);
    if (!leak) continue;
    throw UsageError(name_point(*leak, quantity, first_[q * plan_.spec.blocks / fields_], plan_.dims) +
                     " was computed in slot " + std::to_string(slot) + " from a stale halo on " +
                     to_string(leak->from) + "; " + last_exchange(slot) +
                     "; exchange before that halo is read, or fill more layers");
  }
}

}  // namespace haloscope
