#include "haloscope/runner/movement.hpp"

#include <algorithm>

#include "haloscope/comm/cores.hpp"
#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/schedule.hpp"
#include "haloscope/transport/composite.hpp"

namespace haloscope {
namespace {

bool all_in_shared_memory(const Views& views) {
  return std::all_of(views.begin(), views.end(), [](const auto& slots) {
    return std::all_of(slots.begin(), slots.end(), [](const SlotView& view) { return in_shared_memory(view.origin); });
  });
}

/// Whether neighbours write where this rank receives. Collective.
bool reached_by_neighbours(MPI_Comm comm, const Strategy& strategy, const Views& fields) {
  const bool may = needs_shared_fields(strategy) || strategy.transport == "auto";
  return may && !anywhere(!all_in_shared_memory(fields), comm);
}

/// Bytes of all that a rank receives, each message on cache lines of its own; never 0, so that every landing has a place.
std::size_t landing_bytes(const Plan& plan) {
  std::size_t bytes = cache_line;
  for (const Message& message : plan.messages)
    if (!message.out) bytes += whole_lines(message.bytes);
  return bytes;
}

/// The points of `box` without gaps, x fastest.
SlotView packed_view(std::byte* at, const Box& box, std::int64_t element) {
  const std::int64_t row = element * box.extent(0);
  return {at, {element, row, row * box.extent(1)}, element};
}

}  // namespace

Movement::Movement(MPI_Comm comm, const Layout& layout, const Plan& plan, const Views& fields, const Strategy& strategy,
                   const std::vector<int>& nodes)
    : strategy_(strategy), plan_(plan), views_(fields), fields_(fields.size()) {
  MPI_Comm_dup(comm, &comm_);
  moved_.resize(plan_.spec.quantities.size());
  if (plan_.spec.reverse) add_landings(nodes);
  program_ = exchange_program(plan_, false, collective_rounds(strategy_));
  context_ = {comm_, &layout, &plan_, &views_, more_ranks_than_cores(comm_)};
  context_.nodes = nodes;
  context_.remembers = true;
  open();
  next_ = program_.ops.size();
}

Movement::~Movement() {
  finish();
  link_.reset();
  landings_ = Memory();
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

/// Regions of a message follow each other, so that links receive it where it is added from.
void Movement::add_landings(const std::vector<int>& nodes) {
  const std::size_t bytes = landing_bytes(plan_), slots = views_.front().size();
  landings_ =
      reached_by_neighbours(comm_, strategy_, views_) ? allocate_shared(Node(comm_, nodes), bytes) : Memory(bytes);
  std::byte* line = landings_.data();
  for (std::size_t q = fields_; q < plan_.spec.quantities.size(); ++q)
    views_.emplace_back(slots, packed_view(line, {{0, 0, 0}, {1, 1, 1}}, plan_.spec.quantities[q].element_bytes));
  for (const Message& message : plan_.messages) {
    if (message.out) continue;
    std::byte* at = line;
    for (const Region& region : message.regions) {
      const std::int64_t element = plan_.spec.quantities[static_cast<std::size_t>(region.quantity)].element_bytes;
      views_[static_cast<std::size_t>(region.quantity)].assign(slots, packed_view(at, region.box, element));
      at += region.box.volume() * element;
    }
    line += whole_lines(message.bytes);
  }
}

void Movement::open() {
  link_ = open_link(strategy_, context_);
  ops_ = std::make_unique<CommOps>(program_, views_, *link_, comm_, context_.yield);
}

void Movement::move(std::span<void* const> first, int slot) {
  for (std::size_t q = 0; q < fields_; ++q) {
    std::byte*& origin = views_[q][static_cast<std::size_t>(slot)].origin;
    moved_[q] = static_cast<std::byte*>(first[q]) - origin;
    origin = static_cast<std::byte*>(first[q]);
  }
  if (!link_->follows()) return open();
  link_->follow(slot, moved_);
  ops_->follow(slot, moved_);
}

}  // namespace haloscope
