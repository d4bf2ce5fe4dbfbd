#include "haloscope/runner/prepared_exchange.hpp"

#include <algorithm>
#include <new>

#include "haloscope/comm/gather.hpp"
#include "haloscope/comm/meeting.hpp"
#include "haloscope/comm/mpi_call.hpp"
#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/out_of_memory.hpp"
#include "haloscope/core/panels.hpp"
#include "haloscope/error.hpp"
#include "haloscope/extend/agree.hpp"
#include "haloscope/extend/schedule.hpp"
#include "haloscope/extend/transport_traits.hpp"
#include "haloscope/runner/failure.hpp"
#include "haloscope/transport/composite.hpp"

namespace haloscope {
namespace {

bool all_in_shared_memory(const Views& views) {
  return std::all_of(views.begin(), views.end(), [](const auto& slots) {
    return std::all_of(slots.begin(), slots.end(), [](const SlotView& view) { return in_shared_memory(view.origin); });
  });
}

/// Returns true if neighbours write into the memory in which this rank receives. Collective.
bool reached_by_neighbours(MPI_Comm comm, const Strategy& strategy, const Views& fields) {
  const bool may = needs_shared_fields(strategy) || strategy.transport == "auto";
  return may && !anywhere(!all_in_shared_memory(fields), comm);
}

/// Returns the contributions that arrive from other blocks of the rank.
std::vector<Region> local_landings(const Plan& plan) {
  std::vector<Region> landings;
  for (const Copy& copy : plan.copies)
    if (plan.spec.quantities[copy.quantity].lands >= 0 && copy.store == Store::replace)
      landings.push_back({copy.quantity, copy.to});
  return landings;
}

std::int64_t bytes_of(const Plan& plan, const Region& region) {
  return region.box.volume() * plan.spec.quantities[region.quantity].element_bytes;
}

/// Returns the bytes of all messages that a rank receives, and of local landings, each on separate cache lines; never
/// 0, so that every landing has an address.
std::size_t landing_bytes(const Plan& plan) {
  std::size_t bytes = cache_line;
  for (const Message& message : plan.messages)
    if (!message.out) bytes += whole_lines(message.bytes);
  for (const Region& landing : local_landings(plan)) bytes += whole_lines(bytes_of(plan, landing));
  return bytes;
}

/// Returns a view of the points of `box` without gaps, x fastest.
SlotView packed_view(std::byte* at, const Box& box, std::int64_t element) {
  const std::int64_t row = element * box.extent(0);
  return {at, {element, row, row * box.extent(1)}, element};
}

ScheduleOptions options_for(const Strategy& strategy, bool on_device) {
  ScheduleOptions options;
  options.collective_rounds = collective_rounds(strategy);
  options.device = on_device;
  options.staged = on_device && find_traits(strategy.transport).staged;
  options.signals = on_device && signals(strategy);
  return options;
}

}  // namespace

PreparedExchange::PreparedExchange(MPI_Comm comm, const Layout& layout, const Plan& plan, const Views& fields,
                                   const Strategy& strategy, const std::vector<int>& nodes, device::Device* device)
    : own_(LibraryComm::on(comm)),
      strategy_(strategy),
      plan_(plan),
      views_(fields),
      fields_(fields.size()),
      held_(new Held{LinkTags(*own_, plan_, static_cast<int>(fields.front().size()))}),
      context_{.comm = own_->comm(),
               .layout = &layout,
               .plan = &plan_,
               .views = &views_,
               .yield = own_->has_more_ranks_than_cores(1),
               .nodes = nodes,
               .device = device,
               .remembers = true,
               .tags = held_->tags.tags()},
      device_(device) {
  const device::Current current(device_);
  held_->tags.open([&] {
    moved_.resize(plan_.spec.quantities.size());
    if (plan_.spec.reverse()) add_landings(open_landings(nodes));
    if (plan_.meets_itself()) add_turned();
    program_ = exchange_program(plan_, options_for(strategy_, device != nullptr));
    if (device != nullptr) lane_ = std::make_unique<DeviceLane>(*device, program_, plan_, views_);
    open();
    if (device != nullptr)
      shared_.emplace(own_->comm(), context_.tags.failure(), ranks_to_warn(own_->comm(), {&plan_}));
  });
  next_ = program_.ops.size();
}

PreparedExchange::~PreparedExchange() {
  if (left_) {
    abandon();
    return;
  }
  try {
    finish();
    if (!closes_alone()) close();
  } catch (const MpiError& error) {
    end_job(error.what());
  } catch (...) {
    abandon();
    return;
  }
  lane_.reset();
  link_.reset();
  held_.reset();
}

/// Leaves messages in flight, their tags and memory as they are, since peers may never answer. The device's work ends
/// first.
void PreparedExchange::abandon() {
  link_->abandon();
  lane_.reset();
  static_cast<void>(link_.release());
  static_cast<void>(held_.release());
}

/// Calls work() with the device current.
template <class Work>
auto PreparedExchange::use_device(Work work) {
  require_sound();
  try {
    const device::Current current(device_);
    const FailureWatch watch;
    const MpiProgress progress(own_->comm());
    return work();
  } catch (const MpiError&) {  // handled by collectively()
    throw;
  } catch (const PeerFailure& error) {
    fail(error.exit_code(), error.what(), true);
  } catch (const Error& error) {
    fail(error.exit_code(), error.what(), false);
  } catch (const std::bad_alloc&) {
    fail(Exit::failed, exhausted_memory().data(), false);
  }
}

bool PreparedExchange::closes_alone() const { return link_->closes_alone() && !held_->landings_in_window; }

/// Closes the link. Its end waits for all ranks, one of which may have failed, or may never come where an opening has
/// failed on this rank alone.
void PreparedExchange::close() {
  require_company(own_->comm());
  const auto ending = [this] { return "exchange of " + name(); };
  use_device([&] { meet_at_end(own_->comm(), context_.tags.ending(), context_.yield, ending); });
}

/// Lets streams and kernels that wait for peers go on, so that memory can be freed.
void PreparedExchange::fail(Exit exit, const char* reason, bool by_peer) {
  try {
    failure_ = name_failure(own_->comm(), plan_, "the exchange of slot " + std::to_string(slot_), reason);
  } catch (const std::bad_alloc&) {
    failure_ = "out of memory";  // such a short text allocates nothing
  }
  if (shared_) shared_->send(by_peer ? reason : failure_.c_str());
  link_->abandon();
  throw Error(exit, failure_);
}

std::byte* PreparedExchange::open_landings(const std::vector<int>& nodes) {
  const std::size_t bytes = landing_bytes(plan_);
  if (device_ != nullptr) {
    agree(own_->comm(), [&] { held_->landings_there = device::Buffer(*device_, device::Space::device, bytes); });
    return held_->landings_there.data();
  }
  held_->landings_in_window = reached_by_neighbours(own_->comm(), strategy_, views_);
  held_->landings =
      held_->landings_in_window ? allocate_shared(own_->node(nodes), bytes) : Memory(bytes, "buffers for what arrives");
  return held_->landings.data();
}

/// Makes regions of a message consecutive, so that links receive it where it is added from.
void PreparedExchange::add_landings(std::byte* line) {
  const std::size_t slots = views_.front().size();
  for (std::size_t q = fields_; q < plan_.spec.quantities.size(); ++q)
    views_.emplace_back(slots, packed_view(line, {{0, 0, 0}, {1, 1, 1}}, plan_.spec.quantities[q].element_bytes));
  for (const Message& message : plan_.messages) {
    if (message.out) continue;
    std::byte* at = line;
    for (const Region& region : message.regions) {
      const std::int64_t element = plan_.spec.quantities[region.quantity].element_bytes;
      views_[region.quantity].assign(slots, packed_view(at, region.box, element));
      at += region.box.volume() * element;
    }
    line += whole_lines(message.bytes);
  }
  for (const Region& landing : local_landings(plan_)) {
    const std::int64_t element = plan_.spec.quantities[landing.quantity].element_bytes;
    views_[landing.quantity].assign(slots, packed_view(line, landing.box, element));
    line += whole_lines(bytes_of(plan_, landing));
  }
}

/// Adds the views of turned fields, see Quantity::turns.
void PreparedExchange::add_turned() {
  for (std::size_t q = fields_; q < plan_.spec.quantities.size(); ++q) {
    std::vector<SlotView> slots = views_[static_cast<std::size_t>(plan_.spec.quantities[q].turns)];
    for (SlotView& view : slots)
      view = {view.origin, turned(view.stride, plan_.spec.quantities[q].turn), view.element_bytes()};
    views_.push_back(std::move(slots));
  }
}

void PreparedExchange::open() {
  link_ = open_link(strategy_, context_);
  const Views none;  // the device makes the copies
  ops_ = std::make_unique<CommOps>(program_, lane_ ? none : views_, *link_, own_->comm(), context_.yield, name());
  if (lane_) lane_->bind(static_cast<DeviceLink&>(*link_));
}

std::vector<int> PreparedExchange::in_blocks(const std::vector<int>& fields) const {
  const int blocks = plan_.spec.blocks, each = static_cast<int>(fields_) / blocks;
  std::vector<int> numbers;
  for (int block = 0; block < blocks; ++block)
    for (const int field : fields) numbers.push_back(block * each + field);
  return numbers;
}

std::string PreparedExchange::name() const {
  std::vector<std::string> names;
  const auto named = std::min<std::size_t>(fields_ / plan_.spec.blocks, quantities_of_block(plan_.spec));
  for (std::size_t q = 0; q < named; ++q) names.push_back(plan_.spec.quantities[q].name);
  return join(names, ", ");
}

void PreparedExchange::begin_on_device(DeviceStream after) {
  use_device([&] { lane_->begin(after); });
}

/// Enqueues the device's operations as far as they need not wait for the host, or the stream itself waits. Only where
/// the host runs no other work until they are done: the host must not wait for a stream that waits for messages.
void PreparedExchange::enqueue_ahead() {
  for (enqueued_ = std::max(enqueued_, next_); enqueued_ < program_.ops.size(); ++enqueued_) {
    const Op& op = program_.ops[enqueued_];
    if (!on_device(op.lane)) continue;
    if (!lane_->may_enqueue(op, next_)) return;
    lane_->enqueue(static_cast<int>(enqueued_), slot_);
  }
}

bool PreparedExchange::progress_on_device() {
  constexpr unsigned calls_per_look = 256;
  return use_device([&] {
    const bool ended = advance_on_device();
    if (!ended && ++fruitless_ % calls_per_look == 0) SharedFailure::look();
    return ended;
  });
}

bool PreparedExchange::advance_on_device() {
  for (; !idle(); ++next_) {
    const Op& op = program_.ops[next_];
    if (!on_device(op.lane)) {
      if (!lane_->ready(op) || !ops_->try_run(op, slot_)) return false;
    } else if (next_ >= enqueued_) {
      lane_->enqueue(static_cast<int>(next_), slot_);
    }
  }
  return lane_->reached();
}

void PreparedExchange::finish_on_device(const DeviceStream* before) {
  use_device([&] {
    for (; !idle(); ++next_) {
      enqueue_ahead();
      const Op& op = program_.ops[next_];
      if (on_device(op.lane)) continue;
      lane_->await(op);
      ops_->run(op, slot_);
    }
    before != nullptr ? lane_->finish(*before) : lane_->finish();
  });
}

void PreparedExchange::rest() {
  if (lane_) use_device([&] { lane_->finish(); });
}

void PreparedExchange::set_origins(std::span<void* const> first, int slot) {
  for (std::size_t q = 0; q < fields_; ++q) {
    std::byte*& origin = views_[q][slot].origin;
    moved_[q] = static_cast<std::byte*>(first[q]) - origin;
    origin = static_cast<std::byte*>(first[q]);
  }
  for (std::size_t q = fields_; q < views_.size(); ++q)
    if (const int field = plan_.spec.quantities[q].turns; field >= 0) {
      views_[q][slot].origin = views_[field][slot].origin;
      moved_[q] = moved_[field];
    }
}

/// Follows moved fields. Messages of a refused opening may match messages of the next one, which therefore has other
/// tags.
void PreparedExchange::follow(int slot, bool anew) {
  const device::Current current(device_);
  if (follows() && !anew) {
    link_->follow(slot, moved_);
    ops_->follow(slot, moved_);
    return;
  }
  if (anew) {
    held_->tags.retire();
    held_->tags = LinkTags(*own_, plan_, static_cast<int>(views_.front().size()));
    context_.tags = held_->tags.tags();
  }
  held_->tags.open([this] { open(); });
}

}  // namespace haloscope
