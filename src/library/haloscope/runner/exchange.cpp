#include "haloscope/exchange.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/comm/shared_failure.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/guard.hpp"
#include "haloscope/runner/memory_space.hpp"
#include "haloscope/runner/movements.hpp"
#include "haloscope/runner/overrides.hpp"
#include "haloscope/runner/sequence.hpp"
#include "haloscope/transport/views.hpp"

namespace haloscope {

constexpr const char* made_again = "an exchange of other arrays";

struct Exchange::State {
  MemorySpace place;                       // of the fields
  std::unique_ptr<device::Device> device;  // that the fields are on
  Strategy strategy;
  Layout layout;
  ExchangeSpec spec;  // as requested, without additions of the strategy
  std::vector<int> nodes;
  std::unique_ptr<Movements> movements;
  Movement* current = nullptr;  // the one started last
  bool under_way = false;       // ... and not known to have ended
  bool moved = false;           // fields have moved since the last start
  bool broken = false;          // the last rebind() was refused: links may still move the old arrays
  std::unique_ptr<Guard> guard;
  OwnedComm guard_comm;              // check_clean() is collective, and threads may check exchanges concurrently
  std::optional<Sequence> sequence;  // of a guarded exchange
  int exceptions = std::uncaught_exceptions();  // in flight when it was opened
  std::shared_ptr<std::atomic<bool>> own_busy = std::make_shared<std::atomic<bool>>(false);  // free() holds it longer
  std::atomic<bool>& busy = busy_mark(*own_busy);

  State(MPI_Comm parent, const Layout& grid_layout, const ExchangeSpec& requested, const Strategy& chosen,
        const Views& views, const std::vector<int>& nodes_of_ranks, bool guarded)
      : layout(grid_layout), spec(requested), nodes(nodes_of_ranks) {
    Plan plan;
    bool huge_pages = false;
    agree(parent, [&] {
      place = place_of_fields(spec.quantities, views);
      strategy = strategy_for(place, chosen);
      plan = plan_of(parent, layout, spec, strategy);
      device = place.open();
      if (device && layout.has_several_blocks())
        throw UsageError("fields of several blocks a rank are in " + to_string(place) +
                         ", and exchanges move them in host memory only; use a grid of one block a rank");
      if (device && plan.meets_itself())
        throw UsageError("the grid has a fold or seams and its fields are in " + to_string(place) +
                         ", and exchanges cross these in host memory only; pass fields in host memory");
      check_views(plan, views, device != nullptr);
      huge_pages = may_use_huge_pages() && !device;
    });
    require_same(parent, plan, layout, strategy, views.front().size(), nodes, guarded);
    for (std::size_t q = 0; q < views.size() && huge_pages; ++q)
      for (const SlotView& view : views[q]) improve_memory(view, points_moved(plan, static_cast<int>(q)));
    movements = std::make_unique<Movements>(
        Movements::Of{&layout, &spec, &strategy, &nodes, device.get(), guarded},
        std::make_unique<PreparedExchange>(parent, layout, plan, views, strategy, nodes, device.get()));
    current = &movements->first();
    if (!guarded) return;
    guard = std::make_unique<Guard>(layout, whole().plan(), whole().views(), device.get());
    guard_comm = duplicate(whole().comm());
    sequence.emplace(guard_comm.get(), whole().plan(), whole().name(), slots());
  }
  /// Does not wait for messages after neighbours have made another exchange, or during stack unwinding.
  ~State() {
    if ((sequence && sequence->differs()) || std::uncaught_exceptions() > exceptions) leave();
    movements.reset();
  }
  PreparedExchange& whole() { return movements->whole(); }
  const PreparedExchange& whole() const { return movements->whole(); }
  int slots() const { return static_cast<int>(whole().views().front().size()); }
  /// Leaves the targets of messages that neighbours may still send: MPI may refuse to free a communicator with
  /// messages.
  void leave() {
    for (Movement& one : *movements) one.exchange->leave();
    guard_comm.release();
    note_kept();
  }
  /// Starts the movement that serves a request.
  /// @param stream  empty: none was passed.
  void start(const char* call, const ExchangePart& part, Motion motion, int slot, std::optional<DeviceStream> stream) {
    const auto check = [&] {
      if (stream) require_device(place, call);
      require_ready(call, slot);
    };
    const auto opened = [&](const Movement& one) {
      if (sequence) sequence->add(verb_of(one.request.motion) + movements->part_of(one, " "));
    };
    start(movements->serve(part, motion, check, opened), slot, stream.value_or(DeviceStream{}));
  }
  void start(Movement& movement, int slot, DeviceStream after = {}) {
    if (moved) check_apart(whole().plan(), whole().views());
    moved = false;
    const PartRequest& request = movement.request;
    // Layers beyond a part of the exchange stay as fresh as they are; accumulations change the points behind all.
    if (guard && request.motion == Motion::accumulate)
      guard->overwritten(slot, request.fields, widths_of(request.fields));
    if (guard && &movement == &movements->first()) guard->overwritten(slot, request.fields, request.widths);
    if (sequence) sequence->start(slot, movement.number);
    if (sequence && movement.exchange->link().must_be_awaited()) check_sequence();
    current = &movement;
    movement.exchange->start(slot, after);
    under_way = true;
  }
  /// Returns the layers that the whole exchange fills of some fields.
  std::vector<ExchangeSpec::Sides> widths_of(const std::vector<int>& fields) const {
    std::vector<ExchangeSpec::Sides> widths;
    for (const int q : fields) widths.push_back(spec.sides_of(q));
    return widths;
  }
  /// Returns true if neighbours make the same exchange, and all their notes have arrived.
  bool is_in_step() {
    if (!sequence || sequence->progress()) return true;
    if (device) SharedFailure::look();
    return false;
  }
  /// Waits until neighbours make the same exchange.
  void check_sequence() {
    if (!sequence) return;
    const FailureWatch watch(device != nullptr);
    sequence->check();
  }
  /// Ends the exchange started last.
  void settle() {
    if (std::exchange(under_way, false) && guard && current->request.motion == Motion::fill)
      guard->filled(current->exchange->slot(), current->request.fields, current->request.widths);
  }
  void change(int slot, int fresh, DeviceStream stream, bool waits) {
    const Call call(busy, "changed");
    require_ready("changed", slot);
    guard->changed(slot, fresh, stream, waits);
    sequence->changed(slot);
  }
  /// @param stream  null: no stream.
  void check(int slot, const DeviceStream* stream) {
    const Call call(busy, "check_clean");
    const FailureWatch watch(device != nullptr);
    agree_in(Shared::check_clean, [&] {
      if (stream != nullptr) require_device(place, "check_clean");
      require_ready("check_clean", slot);
      guard->check_clean(slot, stream != nullptr ? *stream : DeviceStream{});
    });
  }
  /// Calls agree() in a collective call; MPI may refuse it there on one rank alone.
  template <class Check>
  void agree_in(Shared call, const Check& check) const {
    const MPI_Comm comm = comm_of(call);
    const char* const made = call == Shared::accumulate    ? made_by(Motion::accumulate)
                             : call == Shared::share       ? made_by(Motion::share)
                             : call == Shared::check_clean ? "a check of halos"
                                                           : made_again;
    collectively(comm, made, [&] { agree(comm, check); });
  }
  /// Returns true if neighbours need not get the addresses of fields.
  bool follows() const {
    return !broken && !device && std::all_of(movements->begin(), movements->end(), [](const Movement& one) {
      return one.exchange->follows();
    });
  }
  /// Sets the addresses of every movement before any follows. Until all have followed, the exchange is broken: the
  /// next call opens all of them again.
  void rebind(std::span<void* const> first, int slot) {
    const bool anew = std::exchange(broken, true);
    moved = true;
    for (const Movement& one : *movements)
      one.exchange->set_origins(chosen(first, whole().in_blocks(one.request.fields)), slot);
    if (guard) guard->moved(slot);
    for (const Movement& one : *movements) one.exchange->follow(slot, anew);
    broken = false;
  }
  /// Returns true if fields move, or where strategies open again, if fields of any rank do. Collective then.
  bool moves_anywhere(bool moves) const {
    if (follows()) return moves;
    const MPI_Comm comm = whole().comm();
    return collectively(comm, made_again, [&] { return anywhere(moves, comm); });
  }
  /// @param call  that moves the fields.
  void rebind_as(const char* call, std::span<void* const> first, int slot) {
    const auto check = [&] {
      check_rebind(call, first, slot);
      for (const Movement& one : *movements) one.exchange->rest();
    };
    collectively(whole().comm(), made_again, [&] {
      const FailureWatch watch(device != nullptr);  // agree() ends if a device fails on another rank
      follows() ? check() : agree(whole().comm(), check);
      rebind(first, slot);
    });
  }
  /// Returns true if the fields of a slot are at some addresses, and an exchange of them may start.
  bool is_at(std::span<void* const> first, int slot) const {
    const FieldViews views = whole().views();
    if (broken || under_way || slot < 0 || slot >= slots() || first.size() != views.size()) return false;
    return std::equal(first.begin(), first.end(), views.begin(),
                      [&](const void* at, const auto& slots_of) { return slots_of[slot].origin == at; });
  }
  void check_rebind(const char* call, std::span<void* const> first, int slot) const {
    require_ready(call, slot);
    const std::size_t fields = whole().views().size();
    const bool reads = !whole().plan().own_cells().empty();
    const auto null = reads ? std::find(first.begin(), first.end(), nullptr) : first.end();
    if (first.size() != fields || null != first.end())
      throw UsageError(
          std::string(call) + "() got " + std::to_string(first.size()) + " addresses" +
          (null != first.end() ? ", and number " + std::to_string(null - first.begin()) + " is null" : "") +
          "; pass that of the first owned point of each of " + std::to_string(fields) + " fields");
    require_same_place(place, spec.quantities, first);
  }
  /// Returns the communicator on which the ranks make a collective call.
  MPI_Comm comm_of(Shared call) const { return call == Shared::check_clean ? guard_comm.get() : whole().comm(); }
  bool is_collective(Shared call) const {
    if (call == Shared::accumulate) return movements->find({}, Motion::accumulate) == nullptr;
    if (call == Shared::share) return movements->find({}, Motion::share) == nullptr;
    return call == Shared::check_clean ? guard != nullptr : !follows();
  }
  void require_ready(const char* call, int slot) const {
    require_idle(call);
    require_slot(slot);
  }
  void require_idle(const char* call) const {
    if (!under_way) return;
    if (sequence) sequence->require_same();
    current->exchange->require_sound();
    throw UsageError(std::string(call) + "() was called while " + "the " + to_word(current->request.motion) +
                     " of slot " + std::to_string(current->exchange->slot()) +
                     " is still in flight; call finish() first, or use a second Exchange");
  }
  void require_slot(int number) const {
    if (number < 0 || number >= slots())
      throw UsageError("slot " + std::to_string(number) + " does not exist; the fields have " +
                       std::to_string(slots()));
  }
};

Exchange::Exchange(MPI_Comm comm, const Layout& layout, const ExchangeSpec& spec, const Strategy& requested,
                   const Views& views, const std::vector<int>& nodes, bool guard) {
  require_communicator(comm);
  state_ = collectively(comm, "an exchange", [&] {
    const Strategy chosen = chosen_strategy(comm, requested);
    return std::make_unique<State>(comm, layout, spec, chosen, views, nodes, chosen_guard(comm, guard));
  });
}

Exchange::Exchange(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& fields, const Strategy& requested,
                   const ExchangeOptions& options, const std::vector<int>& nodes) {
  require_communicator(comm);
  collectively(comm, "an exchange", [&] {
    ExchangeSpec spec;
    Views views;
    agree(comm, [&] {
      check_size(comm, layout);
      const int rank = rank_in(comm);
      check_blocks(fields, layout, rank);
      spec = spec_of(fields, layout.dims(), options, blocks_moved(layout, rank));
      views = views_of(fields);
    });
    *this = Exchange(comm, layout, spec, requested, views, nodes, options.guard);
  });
}

Exchange::~Exchange() {
  if (state_ && mpi_has_ended()) static_cast<void>(state_.release());
}
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&& other) noexcept {
  Exchange(std::move(other)).state_.swap(state_);
  return *this;
}

/// Calls that an exchange allows after a refused rebind().
constexpr std::array<std::string_view, 4> when_broken{"rebind", "exchange_at", "first_points", "plan"};

Exchange::State& Exchange::state(const char* call) const {
  if (!state_)
    throw UsageError(std::string(call) +
                     "() was called on an Exchange that was freed, or moved to another one; call that one's");
  if (state_->broken && std::find(when_broken.begin(), when_broken.end(), call) == when_broken.end())
    throw UsageError(std::string(call) +
                     "() was called on an exchange whose last rebind() failed; rebind it again, or free it");
  return *state_;
}

void Exchange::start(int slot) {
  State& of = state("start");
  const Call call(of.busy, "start");
  of.require_ready("start", slot);
  of.start(of.movements->first(), slot);
}

void Exchange::start(int slot, DeviceStream after) { start({}, slot, after); }

void Exchange::start(const ExchangePart& part, int slot, std::optional<DeviceStream> after) {
  State& of = state("start");
  const Call call(of.busy, "start");
  of.start("start", part, Motion::fill, slot, after);
}

void Exchange::start_accumulate(int slot) { start_accumulate({}, slot); }

void Exchange::start_accumulate(int slot, DeviceStream after) { start_accumulate({}, slot, after); }

void Exchange::start_accumulate(const ExchangePart& part, int slot, std::optional<DeviceStream> after) {
  State& of = state("start_accumulate");
  const Call call(of.busy, "start_accumulate");
  of.start("start_accumulate", part, Motion::accumulate, slot, after);
}

void Exchange::start_share(const ExchangePart& part, int slot, std::optional<DeviceStream> after) {
  State& of = state("start_share");
  const Call call(of.busy, "start_share");
  of.start("start_share", part, Motion::share, slot, after);
}

void Exchange::rebind(std::span<void* const> first, int slot) {
  State& of = state("rebind");
  const Call call(of.busy, "rebind");
  of.rebind_as("rebind", first, slot);
}

void Exchange::exchange_at(std::span<void* const> first, int slot) {
  State& of = state("exchange_at");
  {
    const Call call(of.busy, "exchange_at");
    if (of.moves_anywhere(!of.is_at(first, slot))) of.rebind_as("exchange_at", first, slot);
  }
  exchange(slot);
}

std::vector<void*> Exchange::first_points(int slot) const {
  const State& of = state("first_points");
  of.require_slot(slot);
  std::vector<void*> found;
  for (const auto& slots : of.whole().views()) found.push_back(slots[slot].origin);
  return found;
}

bool Exchange::progress() {
  State& of = state("progress");
  const Call call(of.busy, "progress");
  const bool in_step = of.is_in_step();
  const bool ended = of.current->exchange->progress() && in_step;
  if (ended) of.settle();
  return ended;
}

void Exchange::finish() {
  State& of = state("finish");
  const Call call(of.busy, "finish");
  of.check_sequence();
  of.current->exchange->finish();
  of.settle();
}

void Exchange::finish(DeviceStream before) {
  State& of = state("finish");
  const Call call(of.busy, "finish");
  require_device(of.place, "finish");
  of.check_sequence();
  of.current->exchange->finish(before);
  of.settle();
}

void Exchange::changed(int slot, int fresh) {
  if (State& of = state("changed"); of.guard) of.change(slot, fresh, {}, true);
}

void Exchange::changed(int slot, int fresh, DeviceStream stream) {
  State& of = state("changed");
  require_device(of.place, "changed");
  if (of.guard) of.change(slot, fresh, stream, false);
}

void Exchange::require_fresh(int depth, int slot) const {
  State& of = state("require_fresh");
  if (!of.guard) return;
  const Call call(of.busy, "require_fresh");
  of.require_ready("require_fresh", slot);
  of.guard->require_fresh(depth, slot);
}

void Exchange::check_clean(int slot) const {
  if (State& of = state("check_clean"); of.guard) of.check(slot, nullptr);
}

void Exchange::check_clean(int slot, DeviceStream after) const {
  State& of = state("check_clean");
  of.guard ? of.check(slot, &after) : require_device(of.place, "check_clean");
}

void Exchange::refuse(Shared call, Exit exit, const std::string& text) const {
  State& of = state(call == Shared::rebind || call == Shared::run_at ? "rebind" : "refuse");
  const Call here(of.busy, "refuse");
  if (call == Shared::run_at) of.moves_anywhere(true);
  if (of.is_collective(call)) of.agree_in(call, [&] { fail(exit, text); });
  fail(exit, text);
}

void Exchange::free() {
  if (!state_) return;
  const std::shared_ptr<std::atomic<bool>> mark = state_->own_busy;
  const Call call(state_->busy, "free");
  state_.reset();
}

const Plan& Exchange::plan() const { return state("plan").whole().plan(); }

std::string Exchange::report() const {
  const State& of = state("report");
  const device::Current current(of.device.get());
  std::string text = describe_exchange(of.strategy, plan(), of.whole().link()) + (of.guard ? "; guarded" : "");
  for (const Movement& one : *of.movements)
    if (const std::string more = one.exchange->link().report(); &one != &of.movements->first() && !more.empty())
      text += "; " + to_word(one.request.motion) + of.movements->part_of(one, " of ") + ": " + more;
  return text + (of.device ? "; in " + to_string(of.place) + " (" + of.device->info().name + ")" : "");
}

}  // namespace haloscope
