#include "haloscope/transport/onesided/rma_passive.hpp"

#include "haloscope/comm/handles.hpp"
#include "haloscope/comm/mpi_progress.hpp"
#include "haloscope/comm/set_up_messages.hpp"
#include "haloscope/comm/settle.hpp"
#include "haloscope/core/spin.hpp"

namespace haloscope {
/// Empty messages, whose tags have the number of the exchange.
class MessageSignals final : public Signals {
 public:
  explicit MessageSignals(const PassiveLink& link)
      : link_(link),
        out_(static_cast<std::size_t>(link.messages()) * static_cast<std::size_t>(link.slots())),
        in_(out_.size()) {}
  ~MessageSignals() override {
    for (Latest& one : out_) REQUIRE_MPI(MPI_Wait(one.request.address(), MPI_STATUS_IGNORE));
  }
  void expect(int number) override {
    Latest& one = in_[number];
    const auto& p = port(number);
    REQUIRE_MPI(MPI_Irecv(nullptr, 0, MPI_BYTE, p.peer, tag(number, !p.out, one.exchange++), link_.comm(),
                          one.request.address()));
  }
  bool seen(int number) override {
    int done = 0;
    REQUIRE_MPI(MPI_Test(in_[number].request.address(), &done, MPI_STATUS_IGNORE));
    return done;
  }
  void raise(int number) override {
    Latest& one = out_[number];
    const auto& p = port(number);
    REQUIRE_MPI(MPI_Wait(one.request.address(), MPI_STATUS_IGNORE));  // it has arrived: returns immediately
    REQUIRE_MPI(MPI_Isend(nullptr, 0, MPI_BYTE, p.peer, tag(number, p.out, one.exchange++), link_.comm(),
                          one.request.address()));
  }

 private:
  /// The latest signal of a message and slot in one direction, and the number of the next exchange.
  struct Latest {
    OwnedRequest request;
    std::int64_t exchange = 0;
  };

  const PassiveLink::Port& port(int number) const { return link_.port(number / link_.slots()); }
  int tag(int number, bool from_sender, std::int64_t exchange) const {
    return link_.tags().signal(port(number).tag, from_sender, number % link_.slots(), exchange);
  }

  const PassiveLink& link_;
  std::vector<Latest> out_, in_;  // by number
};

/// Counters in the waiter's own memory, set by one-sided atomics of the other end and polled locally.
class FlagSignals final : public Signals {
 public:
  explicit FlagSignals(PassiveLink& link)
      : link_(link),
        sent_(static_cast<std::size_t>(link.messages()) * static_cast<std::size_t>(link.slots()), 0),
        expected_(sent_),
        theirs_(static_cast<std::size_t>(link.messages()), 0),
        window_(link.comm(), {}, sizeof(std::int64_t) * (sent_.size() + 1), hints(link.options())) {
    const auto misaligned = reinterpret_cast<std::uintptr_t>(window_.data()) % sizeof(std::int64_t);
    first_ = misaligned ? sizeof(std::int64_t) - misaligned : 0;
    for (int number = 0; number < static_cast<int>(sent_.size()); ++number) *cell(number) = 0;
    link_.enlist(window_);
    link_.synchronise(window_);
    exchange_places();
  }
  ~FlagSignals() override { link_.retire(window_); }

  void expect(int number) override { ++expected_[number]; }
  bool seen(int number) override {
    if (value(number) >= expected_[number]) return true;
    let_mpi_progress(link_.comm());  // updates of own memory may need it
    return false;
  }
  void raise(int number) override {
    const int id = number / link_.slots(), peer = link_.port(id).peer;
    const std::int64_t* const count = &++sent_[number];
    const std::int64_t place = theirs_[id] + number % link_.slots() * static_cast<std::int64_t>(sizeof *count);
    link_.enter(window_, peer);
    REQUIRE_MPI(MPI_Accumulate(count, 1, MPI_INT64_T, peer, place, 1, MPI_INT64_T, MPI_REPLACE, window_.handle()));
    link_.leave(window_, peer);
  }

 private:
  static Hints hints(const RmaOptions& options) {
    if (options.plain) return {};
    return {{"accumulate_ordering", "none"}, {"accumulate_ops", "same_op_no_op"}, {"same_disp_unit", "true"}};
  }
  std::int64_t* cell(int number) const { return reinterpret_cast<std::int64_t*>(window_.data() + first_) + number; }

  /// In the separate model a plain load must not conflict with an update by another rank; an atomic access may.
  std::int64_t value(int number) {
    if (link_.unified()) {
      link_.synchronise(window_);
      return std::atomic_ref<std::int64_t>(*cell(number)).load(std::memory_order_acquire);
    }
    std::int64_t read = 0;
    const std::int64_t unused = 0;
    link_.enter(window_, link_.rank());
    REQUIRE_MPI(
        MPI_Fetch_and_op(&unused, &read, MPI_INT64_T, link_.rank(), place(number), MPI_NO_OP, window_.handle()));
    link_.leave(window_, link_.rank());
    return read;
  }
  std::int64_t place(int number) const { return static_cast<std::int64_t>(first_ + sizeof(std::int64_t) * number); }

  /// Exchanges the places of the flags of first slots.
  void exchange_places() {
    const auto count = static_cast<std::size_t>(link_.messages());
    SetUpMessages<std::int64_t> theirs(count), mine(count);
    for (int id = 0; id < link_.messages(); ++id) {
      const auto& p = link_.port(id);
      if (!link_.moves(id)) continue;
      theirs.receive(id, p.peer, link_.tags().signal(p.tag, !p.out, 0), link_.comm());
      mine.send(id, place(id * link_.slots()), p.peer, link_.tags().signal(p.tag, p.out, 0), link_.comm());
    }
    theirs.complete();
    mine.complete();
    for (std::size_t id = 0; id < count; ++id) theirs_[id] = theirs[id];
  }

  PassiveLink& link_;
  std::vector<std::int64_t> sent_, expected_;  // by number
  std::vector<std::int64_t> theirs_;           // by message: place of the flag of the first slot at the other end
  Window window_;
  std::size_t first_ = 0;  // first flag in the rank's window memory
};

PassiveLink::PassiveLink(const LinkContext& context, const RmaOptions& options)
    : WindowLink(context, options), stages_(static_cast<std::size_t>(messages()), Stage::idle) {
  active_.reserve(stages_.size());
}

void PassiveLink::open() {
  const Hints hints{{"accumulate_ordering", "none"}};
  if (options().per_message)
    make_message_windows(hints);
  else
    make_common_windows(1, hints, [](int) { return 0; });
  for (const Window& window : windows()) enlist(window);
  if (options().barrier) return;
  if (options().flag)
    signals_ = std::make_unique<FlagSignals>(*this);
  else
    signals_ = std::make_unique<MessageSignals>(*this);
}

void PassiveLink::close() {
  finish();
  if (options().barrier) fetch({});  // a rank without messages takes part too
  signals_.reset();
  for (const Window& window : windows()) retire(window);
}

void PassiveLink::begin(Ids ids, int slot) {
  for (int id : ids) {
    start(port(id), slot);
    stages_[id] = Stage::awaiting;
    active_.push_back(id);
    signals_->expect(signal(id));
    if (port(id).origin) continue;
    if (port(id).out) synchronise(window_of(id));  // packed bytes
    signals_->raise(signal(id));
  }
}

void PassiveLink::post(Ids in, int slot) {
  if (!options().barrier) return begin(in, slot);
  for (int id : in) start(port(id), slot);
}

void PassiveLink::send(Ids out, int slot) {
  if (!options().barrier) {
    begin(out, slot);
    advance();
    return;
  }
  for (int id : out) {
    start(port(id), slot);
    synchronise(window_of(id));  // packed bytes
  }
  open_ = true;
}

void PassiveLink::complete(Ids out, int) {
  if (!options().barrier) return settle(out);
  for (int id : out) settled_one(id);  // wait() of the same round has completed both directions
}

void PassiveLink::fetch(Ids in) {
  if (!open_) return;
  meet(comm(), yield());
  for (int id : in) issue(id);
  for (int id : in) {
    for (Spin spin(yield()); !completed(id);) spin.again();
    settled_one(id);
  }
  meet(comm(), yield());
  open_ = false;
}

/// Starts all transfers that may start before it completes any, so that they overlap.
void PassiveLink::advance() {
  for (int id : active_) {
    if (stages_[id] != Stage::awaiting || !signals_->seen(signal(id))) continue;
    if (port(id).origin) {
      issue(id);
      stages_[id] = Stage::issued;
      continue;
    }
    if (!port(id).out) synchronise(window_of(id));  // received bytes
    settled_one(id);
  }
  for (int id : active_)
    if (stages_[id] == Stage::issued && completed(id)) {
      signals_->raise(signal(id));
      settled_one(id);
    }
  std::erase_if(active_, [&](int id) { return stages_[id] == Stage::idle; });
}

void PassiveLink::settled_one(int id) {
  stages_[id] = Stage::idle;
  port(id).pending.store(false, std::memory_order_relaxed);
}

bool PassiveLink::settled(Ids ids) {
  advance();
  return waiting_for(ids, 0) < 0;
}

void PassiveLink::settle(Ids ids) {
  Spin spin(yield());
  while (!settled(ids)) spin.again();
}

}  // namespace haloscope
