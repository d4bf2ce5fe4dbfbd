#include "haloscope/exchange.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "haloscope/agree.hpp"
#include "haloscope/comm/own_comm.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/guard.hpp"
#include "haloscope/runner/library_call.hpp"
#include "haloscope/runner/memory_place.hpp"
#include "haloscope/runner/movement.hpp"
#include "haloscope/transport/views.hpp"

namespace haloscope {

struct Exchange::State {
  MemoryPlace place;                       // of the fields
  std::unique_ptr<device::Device> device;  // that the fields are on
  Strategy strategy;
  Layout layout;
  ExchangeSpec spec;  // as asked for, without what the strategy adds
  std::vector<int> nodes;
  std::unique_ptr<Movement> forward, reverse;  // reverse: from the first accumulate() on
  Movement* current = nullptr;                 // what was started last
  bool under_way = false;                      // ... and not yet seen to have ended
  std::unique_ptr<Guard> guard;
  std::optional<OwnComm> guard_comm;  // check_clean() is collective, and threads may check exchanges concurrently

  State(MPI_Comm parent, const Layout& grid_layout, const ExchangeSpec& asked, const Strategy& chosen,
        const Views& views, const std::vector<int>& nodes_of_ranks, bool guarded)
      : layout(grid_layout), spec(asked), nodes(nodes_of_ranks) {
    Plan plan;
    agree(parent, [&] {
      place = place_of_fields(spec.quantities, views);
      strategy = strategy_for(place, chosen);
      plan = plan_of(parent, layout, spec, strategy);
      device = place.open();
      check_views({.comm = parent, .layout = &layout, .plan = &plan, .views = &views, .device = device.get()});
    });
    if (!same_everywhere(parent, fingerprint(plan, layout, strategy, views.front().size())))
      throw UsageError(
          "the ranks ask for different exchanges; give all of them the same grid, strategy, options and number of "
          "slots, and the same fields in the same order, all in host memory or all on devices");
    for (std::size_t q = 0; q < views.size() && !device; ++q)
      for (const SlotView& view : views[q]) improve_memory(view, points_moved(plan, static_cast<int>(q)));
    forward = std::make_unique<Movement>(parent, layout, plan, views, strategy, nodes, device.get());
    current = forward.get();
    if (!guarded) return;
    guard = std::make_unique<Guard>(layout, forward->plan(), forward->views(), device.get());
    guard_comm.emplace(forward->comm());
  }
  /// Collective the first time. The transpose of what was asked for, whatever more a strategy fills; the reference, which
  /// has none, by messages.
  Movement& opened_reverse() {
    if (reverse) return *reverse;
    const Strategy how = strategy.is_reference() ? Strategy("direct/p2p") : strategy;
    const MPI_Comm comm = forward->comm();
    collectively(comm, [&] {
      reverse = std::make_unique<Movement>(comm, layout, reverse_plan_of(comm, layout, spec, how), forward->views(),
                                           how, nodes, device.get());
    });
    return *reverse;
  }
  void start(Movement& movement, int slot, DeviceStream after = {}) {
    if (guard) guard->overwritten(slot);
    current = &movement;
    movement.start(slot, after);
    under_way = true;
  }
  /// What was started last has ended.
  void settle() {
    if (std::exchange(under_way, false) && guard && current == forward.get()) guard->filled(current->slot());
  }
  void change(int slot, int fresh, DeviceStream stream, bool waits) {
    require_idle("changed");
    require_slot(slot);
    guard->changed(slot, fresh, stream, waits);
  }
  void check(int slot, DeviceStream after) const {
    agree(guard_comm->get(), [&] {
      require_idle("check_clean");
      require_slot(slot);
      guard->check_clean(slot, after);
    });
  }
  void require_idle(const char* call) const {
    if (!current->idle())
      throw UsageError(std::string(call) + "() was called while " +
                       (current == forward.get() ? "the exchange" : "the accumulation") + " of slot " +
                       std::to_string(current->slot()) +
                       " is still in flight; call finish() first, or use a second Exchange");
  }
  void require_slot(int number) const {
    const std::size_t slots = forward->views().front().size();
    if (number < 0 || number >= static_cast<int>(slots))
      throw UsageError("slot " + std::to_string(number) + " does not exist; the fields have " + std::to_string(slots));
  }
};

Exchange::Exchange(MPI_Comm comm, const Layout& layout, const ExchangeSpec& spec, const Strategy& given,
                   const Views& views, const std::vector<int>& nodes, bool guard)
    : state_(collectively(comm, [&] {
        return std::make_unique<State>(comm, layout, spec, chosen_strategy(comm, given), views, nodes,
                                       chosen_guard(comm, guard));
      })) {}

Exchange::Exchange(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& fields, const Strategy& given,
                   const ExchangeOptions& options, const std::vector<int>& nodes) {
  ExchangeSpec spec;
  collectively(comm, [&] { agree(comm, [&] { spec = spec_of(fields, layout.dims(), options); }); });
  *this = Exchange(comm, layout, spec, given, views_of(fields), nodes, options.guard);
}

Exchange::~Exchange() = default;
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;

void Exchange::start(int slot) {
  state_->require_idle("start");
  state_->require_slot(slot);
  state_->start(*state_->forward, slot);
}

void Exchange::start(int slot, DeviceStream after) {
  require_device(state_->place, "start");
  state_->require_idle("start");
  state_->require_slot(slot);
  state_->start(*state_->forward, slot, after);
}

void Exchange::start_accumulate(int slot) {
  state_->require_idle("start_accumulate");
  state_->require_slot(slot);
  state_->start(state_->opened_reverse(), slot);
}

void Exchange::start_accumulate(int slot, DeviceStream after) {
  require_device(state_->place, "start_accumulate");
  state_->require_idle("start_accumulate");
  state_->require_slot(slot);
  state_->start(state_->opened_reverse(), slot, after);
}

void Exchange::rebind(std::span<void* const> first, int slot) {
  state_->require_idle("rebind");
  state_->require_slot(slot);
  const std::size_t fields = state_->forward->views().size();
  if (first.size() != fields || std::find(first.begin(), first.end(), nullptr) != first.end())
    throw UsageError("rebind() got " + std::to_string(first.size()) +
                     " addresses; pass that of the first owned point of each of " + std::to_string(fields) + " fields");
  if (state_->device)
    agree(state_->forward->comm(), [&] { require_same_place(state_->place, state_->spec.quantities, first); });
  if (state_->guard) state_->guard->moved(slot);
  collectively(state_->forward->comm(), [&] {
    state_->forward->move(first, slot);
    if (state_->reverse) state_->reverse->move(first, slot);
  });
}

bool Exchange::progress() {
  const bool ended = state_->current->progress();
  if (ended) state_->settle();
  return ended;
}

void Exchange::finish() {
  state_->current->finish();
  state_->settle();
}

void Exchange::finish(DeviceStream before) {
  require_device(state_->place, "finish");
  state_->current->finish(before);
  state_->settle();
}

void Exchange::changed(int slot, int fresh) {
  if (state_->guard) state_->change(slot, fresh, {}, true);
}

void Exchange::changed(int slot, int fresh, DeviceStream stream) {
  require_device(state_->place, "changed");
  if (state_->guard) state_->change(slot, fresh, stream, false);
}

void Exchange::require_fresh(int depth, int slot) const {
  if (!state_->guard) return;
  state_->require_idle("require_fresh");
  state_->require_slot(slot);
  state_->guard->require_fresh(depth, slot);
}

void Exchange::check_clean(int slot) const {
  if (state_->guard) state_->check(slot, {});
}

void Exchange::check_clean(int slot, DeviceStream after) const {
  require_device(state_->place, "check_clean");
  if (state_->guard) state_->check(slot, after);
}

const Plan& Exchange::plan() const { return state_->forward->plan(); }

std::string Exchange::report() const {
  const device::Current current(state_->device.get());
  return describe_exchange(state_->strategy, plan(), state_->forward->link()) + (state_->guard ? "; guarded" : "") +
         (state_->device ? "; in " + to_string(state_->place) + " (" + state_->device->info().name + ")" : "");
}

}  // namespace haloscope
