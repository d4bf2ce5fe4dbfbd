#include "haloscope/exchange.hpp"

#include <algorithm>

#include "haloscope/agree.hpp"
#include "haloscope/comm/cores.hpp"
#include "haloscope/field/memory.hpp"
#include "haloscope/runner/comm_ops.hpp"
#include "haloscope/runner/exchange_request.hpp"
#include "haloscope/runner/library_call.hpp"
#include "haloscope/schedule.hpp"
#include "haloscope/transport/composite.hpp"
#include "haloscope/transport/views.hpp"

namespace haloscope {

struct Exchange::State {
  MPI_Comm comm = MPI_COMM_NULL;
  Strategy strategy;
  Layout layout;
  Plan plan;
  Views views;
  Program program;
  LinkContext context;
  std::vector<std::ptrdiff_t> moved;  // by field
  std::unique_ptr<Link> link;
  std::unique_ptr<CommOps> ops;
  std::size_t next = 0;  // next operation; program.ops.size(): nothing is in flight
  int slot = 0;

  State(MPI_Comm parent, const Layout& grid_layout, const ExchangeSpec& spec, const Strategy& chosen, const Views& v,
        const std::vector<int>& nodes)
      : strategy(chosen), layout(grid_layout), views(v) {
    agree(parent, [&] {
      plan = plan_of(parent, layout, spec, strategy);
      check_views({parent, &layout, &plan, &views});
    });
    if (!same_everywhere(parent, fingerprint(plan, layout, strategy, views.front().size())))
      throw UsageError(
          "the ranks ask for different exchanges; give all of them the same grid, strategy, options and number of "
          "slots, and the same fields in the same order");
    improve_memory();
    MPI_Comm_dup(parent, &comm);
    program = exchange_program(plan, false, collective_rounds(strategy));
    context = {comm, &layout, &plan, &views, more_ranks_than_cores(comm)};
    context.nodes = nodes;
    context.remembers = true;
    open();
    next = program.ops.size();
  }
  /// Large arrays of the caller's are moved to huge pages, as fields of the library's are from the beginning.
  void improve_memory() const {
    for (std::size_t q = 0; q < views.size(); ++q)
      for (const SlotView& view : views[q])
        if (!in_shared_memory(view.origin))
          move_to_huge_pages(memory_of(view, points_moved(plan, static_cast<int>(q))));
  }
  void open() {
    link = open_link(strategy, context);
    ops = std::make_unique<CommOps>(program, views, *link, comm, context.yield);
  }
  ~State() {
    finish();
    link.reset();
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
  bool progress() {
    while (next < program.ops.size() && ops->try_run(program.ops[next], slot)) ++next;
    return next == program.ops.size();
  }
  void finish() {
    for (; next < program.ops.size(); ++next) ops->run(program.ops[next], slot);
  }
  void require_idle(const char* call) const {
    if (next != program.ops.size())
      throw UsageError(std::string(call) + "() was called while the exchange of slot " + std::to_string(slot) +
                       " is still in flight; call finish() first, or use a second Exchange");
  }
  void require_slot(int number) const {
    if (number < 0 || number >= static_cast<int>(views.front().size()))
      throw UsageError("slot " + std::to_string(number) + " does not exist; the fields have " +
                       std::to_string(views.front().size()));
  }
  /// Fields of a slot to other places.
  void move(std::span<void* const> first, int to_slot) {
    moved.resize(views.size());
    for (std::size_t q = 0; q < views.size(); ++q) {
      std::byte*& origin = views[q][static_cast<std::size_t>(to_slot)].origin;
      moved[q] = static_cast<std::byte*>(first[q]) - origin;
      origin = static_cast<std::byte*>(first[q]);
    }
    if (!link->follows()) return open();
    link->follow(to_slot, moved);
    ops->follow(to_slot, moved);
  }
};

Exchange::Exchange(MPI_Comm comm, const Layout& layout, const ExchangeSpec& spec, const Strategy& given,
                   const Views& views, const std::vector<int>& nodes)
    : state_(std::make_unique<State>(comm, layout, spec, chosen_strategy(comm, given), views, nodes)) {}

Exchange::Exchange(MPI_Comm comm, const Layout& layout, const std::vector<FieldRef>& fields, const Strategy& given,
                   const ExchangeOptions& options, const std::vector<int>& nodes) {
  ExchangeSpec spec;
  agree(comm, [&] { spec = spec_of(fields, layout.dims(), options); });
  *this = Exchange(comm, layout, spec, given, views_of(fields), nodes);
}

Exchange::~Exchange() = default;
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;

void Exchange::start(int slot) {
  state_->require_idle("start");
  state_->require_slot(slot);
  state_->slot = slot;
  state_->next = 0;
  state_->progress();
}

void Exchange::rebind(std::span<void* const> first, int slot) {
  state_->require_idle("rebind");
  state_->require_slot(slot);
  if (first.size() != state_->views.size() || std::find(first.begin(), first.end(), nullptr) != first.end())
    throw UsageError("rebind() got " + std::to_string(first.size()) +
                     " addresses; pass that of the first owned point of each of " +
                     std::to_string(state_->views.size()) + " fields");
  state_->move(first, slot);
}

bool Exchange::progress() { return state_->progress(); }
void Exchange::finish() { state_->finish(); }
const Plan& Exchange::plan() const { return state_->plan; }

std::string Exchange::report() const { return describe_exchange(state_->strategy, state_->plan, *state_->link); }

}  // namespace haloscope
