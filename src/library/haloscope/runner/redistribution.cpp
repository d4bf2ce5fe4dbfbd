#include "haloscope/redistribution.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/running.hpp"
#include "haloscope/comm/shared_failure.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/device/device.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/topology.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/memory_space.hpp"
#include "haloscope/runner/overrides.hpp"
#include "haloscope/runner/prepared_exchange.hpp"
#include "haloscope/transport/views.hpp"

namespace haloscope {
namespace {

/// The splits of a redistribution, and its fields in both.
struct Ends {
  const Layout &from, &to;
  const std::vector<FieldRef>&sources, &targets;
};

/// Returns the bytes of each number of a point; -1: it is not made of numbers.
int number_bytes_of(const Quantity& quantity) {
  return quantity.number_bytes == 0 ? quantity.element_bytes : quantity.number_bytes;
}

/// @throws UsageError for a field that is of another kind in the second split.
void check_pair(const FieldRef& source, const FieldRef& target) {
  const Quantity &u = source.quantity, &v = target.quantity;
  const auto require_equal = [&](const std::string& property, const std::string& first, const std::string& second) {
    if (first != second)
      throw UsageError("source '" + u.name + "' and target '" + v.name + "' differ in " + property + ": " + first +
                       " and " + second + "; pass the same fields in the same order in both splits");
  };
  require_equal("the bytes of a point", std::to_string(u.element_bytes), std::to_string(v.element_bytes));
  require_equal("type", to_word(u.type), to_word(v.type));
  require_equal("the bytes of a number", std::to_string(number_bytes_of(u)), std::to_string(number_bytes_of(v)));
  require_equal("centring", to_word(u.centring), to_word(v.centring));
  require_equal("the number of slots", std::to_string(source.slots.size()), std::to_string(target.slots.size()));
}

void check_splits(MPI_Comm comm, const Layout& from, const Layout& to) {
  check_size(comm, from);
  check_size(comm, to);
  const GridSpec &source = from.grid(), &target = to.grid();  // points move between owners, not across folds and seams
  if (source.dims != target.dims || source.cells != target.cells || source.periodic != target.periodic)
    throw UsageError(
        "the splits of a redistribution are of different grids: " + sizes_text(from.grid().cells, from.dims()) +
        " cells, periodic " + join_numbers(from.grid().periodic, ",") + ", and " +
        sizes_text(to.grid().cells, to.dims()) + " cells, periodic " + join_numbers(to.grid().periodic, ",") +
        "; make both with the same cells and periodic dimensions");
}

/// Returns the quantities of both ends, and checks their fields.
ExchangeSpec spec_of(MPI_Comm comm, const Ends& ends) {
  check_splits(comm, ends.from, ends.to);
  if (ends.sources.empty()) throw UsageError("a redistribution of no fields; pass at least one");
  const int rank = rank_in(comm), blocks = blocks_moved(ends.from, rank), target_blocks = blocks_moved(ends.to, rank);
  const std::size_t sources = ends.sources.size() * static_cast<std::size_t>(target_blocks);
  if (sources != ends.targets.size() * static_cast<std::size_t>(blocks))
    throw UsageError("a redistribution got " + std::to_string(ends.sources.size()) + " sources and " +
                     std::to_string(ends.targets.size()) + " targets for " + std::to_string(blocks) + " and " +
                     std::to_string(target_blocks) +
                     " blocks of this rank; pass the same fields for each block of both splits");
  check_blocks(ends.sources, ends.from, rank);
  check_blocks(ends.targets, ends.to, rank);
  const std::size_t each = ends.sources.size() / static_cast<std::size_t>(blocks);
  for (std::size_t f = 0; f < each; ++f) check_pair(ends.sources[f], ends.targets[f]);
  ExchangeOptions none;
  none.width = 0;
  none.corners = false;
  ExchangeSpec spec = spec_of(ends.sources, ends.from.dims(), none, blocks);
  spec_of(ends.targets, ends.to.dims(), none, target_blocks);  // checks their slots
  for (Quantity& quantity : spec.quantities) quantity.edges = {};
  const std::vector<Quantity> fields = spec.quantities;
  spec.quantities.insert(spec.quantities.end(), fields.begin(), fields.end());
  spec.widths.clear();
  spec.low = spec.high = {0, 0, 0};
  spec.motion = Motion::redistribute;
  spec.onto = ends.to;
  return spec;
}

Views views_of(const Ends& ends) {
  Views views = views_of(ends.sources);
  for (const auto& slots : views_of(ends.targets)) views.push_back(slots);
  return views;
}

/// Returns the strategy that is requested, or where none is, one for the place of the fields. `reference` fills halos
/// alone.
Strategy strategy_of(const MemorySpace& place, const std::optional<Strategy>& requested) {
  if (requested && !requested->is_reference()) return strategy_for(place, *requested);
  return place.backend.empty() ? Strategy("direct/p2p") : strategy_for(place, "auto");
}

/// Compares the requests of all ranks. Collective. @throws UsageError, on all ranks, where they differ.
void require_same(MPI_Comm comm, const Plan& plan, const Layout& from, const Strategy& strategy, std::size_t slots,
                  const std::vector<int>& nodes) {
  const ExchangeSpec& spec = plan.spec;
  std::vector<Quantity> fields(spec.quantities.begin(), spec.quantities.begin() + quantities_of_block(spec));
  std::vector<std::string> names;
  for (const Quantity& field : fields) names.push_back(field.name);
  std::vector<Aspect> aspects = aspects_of(from, nodes);
  for (Aspect& one : aspects_of(*spec.onto, nodes)) {
    one.name += " of the second split";
    aspects.push_back(std::move(one));
  }
  aspects.insert(aspects.end(),
                 {{"strategy", to_string(strategy)}, {"slots", std::to_string(slots)}, fields_of(fields)});
  require_same(
      comm, "redistributions", aspects, names,
      "give all of them the same two splits, strategy and number of slots, and the same fields in the same order, "
      "all in host memory or all on devices");
}

}  // namespace

struct Redistribution::State {
  MemorySpace place;                       // of the fields
  std::unique_ptr<device::Device> device;  // that the fields are on
  Strategy strategy;
  Layout from;
  std::vector<int> nodes;
  std::unique_ptr<PreparedExchange> moved;
  bool under_way = false;                       // and not known to have ended
  int exceptions = std::uncaught_exceptions();  // in flight when it was opened
  std::shared_ptr<std::atomic<bool>> own_busy = std::make_shared<std::atomic<bool>>(false);  // free() holds it longer
  std::atomic<bool>& busy = busy_mark(*own_busy);

  State(MPI_Comm comm, const Ends& ends, const std::optional<Strategy>& requested,
        const std::vector<int>& nodes_of_ranks)
      : from(ends.from), nodes(nodes_of_ranks) {
    Plan plan;
    Views views;
    agree(comm, [&] {
      ExchangeSpec spec = spec_of(comm, ends);
      views = views_of(ends);
      place = place_of_fields(spec.quantities, views);
      strategy = strategy_of(place, requested);
      apply(strategy, from, spec);
      spec.corners = false;
      spec.pattern = Pattern::direct;
      plan = make_plan(from, rank_in(comm), spec);
      device = place.open();
      if (device && (from.has_several_blocks() || ends.to.has_several_blocks()))
        throw UsageError("fields of several blocks a rank are in " + to_string(place) +
                         ", and redistributions move them in host memory only; use a grid of one block a rank");
      check_views(plan, views, device != nullptr);
    });
    require_same(comm, plan, from, strategy, views.front().size(), nodes);
    moved = std::make_unique<PreparedExchange>(comm, from, plan, views, strategy, nodes, device.get());
  }
  /// Does not wait for messages during stack unwinding.
  ~State() {
    if (std::uncaught_exceptions() > exceptions) {
      moved->leave();
      note_kept();
    }
    moved.reset();
  }
  void start(int slot, std::optional<DeviceStream> after) {
    if (after) require_device(place, "start");
    if (under_way) moved->require_sound();
    if (under_way)
      throw UsageError("start() was called while the redistribution of slot " + std::to_string(moved->slot()) +
                       " is still in flight; call finish() first");
    const int slots = static_cast<int>(moved->views().front().size());
    if (slot < 0 || slot >= slots)
      throw UsageError("slot " + std::to_string(slot) + " does not exist; the fields have " + std::to_string(slots));
    moved->start(slot, after.value_or(DeviceStream{}));
    under_way = true;
  }
};

Redistribution::Redistribution(MPI_Comm comm, const Layout& from, const Layout& to,
                               const std::vector<FieldRef>& sources, const std::vector<FieldRef>& targets,
                               const std::optional<Strategy>& requested, const std::vector<int>& nodes) {
  require_communicator(comm);
  state_ = collectively(comm, "a redistribution", [&] {
    return std::make_unique<State>(comm, Ends{from, to, sources, targets}, requested, nodes);
  });
}

Redistribution::~Redistribution() {
  if (state_ && mpi_has_ended()) static_cast<void>(state_.release());
}
Redistribution::Redistribution(Redistribution&&) noexcept = default;
Redistribution& Redistribution::operator=(Redistribution&& other) noexcept {
  Redistribution(std::move(other)).state_.swap(state_);
  return *this;
}

Redistribution::State& Redistribution::state(const char* call) const {
  if (!state_)
    throw UsageError(std::string(call) +
                     "() was called on a Redistribution that was freed, or moved to another one; call that one's");
  return *state_;
}

void Redistribution::start(int slot, std::optional<DeviceStream> after) {
  State& of = state("start");
  const Call call(of.busy, "start");
  of.start(slot, after);
}

bool Redistribution::progress() {
  State& of = state("progress");
  const Call call(of.busy, "progress");
  if (!of.moved->progress()) return false;
  of.under_way = false;
  return true;
}

void Redistribution::finish() {
  State& of = state("finish");
  const Call call(of.busy, "finish");
  of.moved->finish();
  of.under_way = false;
}

void Redistribution::free() {
  if (!state_) return;
  const std::shared_ptr<std::atomic<bool>> mark = state_->own_busy;
  const Call call(state_->busy, "free");
  state_.reset();
}

const Plan& Redistribution::plan() const { return state("plan").moved->plan(); }

std::string Redistribution::report() const {
  const State& of = state("report");
  const device::Current current(of.device.get());
  return describe_exchange(of.strategy, plan(), of.moved->link()) +
         (of.device ? "; in " + to_string(of.place) + " (" + of.device->info().name + ")" : "");
}

void require_same_ranks(MPI_Comm first, MPI_Comm second) {
  collectively(first, "a redistribution", [&] {
    agree(first, [&] {
      int result = MPI_UNEQUAL;
      CHECK_MPI(MPI_Comm_compare(first, second, &result));
      if (result != MPI_IDENT && result != MPI_CONGRUENT)
        throw UsageError(
            "the grids of a redistribution are on communicators of different ranks; make both on one communicator, "
            "with active_ranks where one of them has fewer blocks");
    });
  });
}

}  // namespace haloscope
