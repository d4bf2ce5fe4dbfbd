#include "haloscope/transport/automatic.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "haloscope/comm/shared_memory.hpp"
#include "haloscope/core/names.hpp"
#include "haloscope/core/spin.hpp"
#include "haloscope/error.hpp"
#include "haloscope/strategy.hpp"
#include "haloscope/transport.hpp"
#include "haloscope/transport/composite.hpp"
#include "haloscope/transport_traits.hpp"

namespace haloscope {
namespace {

/// Timed exchanges of a turn: enough that untimed ones, which restore the cache, are not most of the trials; few enough
/// that a short disturbance spoils one turn and not a candidate.
constexpr int timed = 4;
/// Turns of a candidate: 24 times, whose quartiles six disturbed exchanges do not move beyond the fastest quarter.
constexpr int usual_turns = 6;
constexpr int quick_turns = 2;

constexpr double never = std::numeric_limits<double>::infinity();

/// Whether an exchange moves anything along dimension d, between ranks.
bool connected(const Plan& plan, int d) { return d < plan.dims && plan.spec.low[d] + plan.spec.high[d] > 0; }

/// The same number for ranks that a chain of messages may join.
int component(const LinkContext& context) {
  const auto coords = context.layout->coords(context.plan->rank);
  int number = 0;
  for (int d = 0; d < 3; ++d)
    if (!connected(*context.plan, d)) number = number * context.layout->ranks()[d] + coords[d];
  return number;
}

/// Hops between the ranks of a component at most.
int diameter(const LinkContext& context) {
  if (context.layout->has_holes()) return context.layout->size() - 1;  // around them
  int hops = 0;
  for (int d = 0; d < 3; ++d)
    if (connected(*context.plan, d)) hops += context.layout->ranks()[d] - 1;
  return hops;
}

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

}  // namespace

Verdict judge(std::span<double> times, int candidates) {
  struct Quartiles {
    double low = never, middle = never, high = never;
  };
  const std::size_t each = times.size() / static_cast<std::size_t>(candidates);
  const auto quartiles = [&](int candidate) -> Quartiles {
    const auto mine = times.subspan(static_cast<std::size_t>(candidate) * each, each);
    std::sort(mine.begin(), mine.end());
    const auto n = static_cast<std::size_t>(std::lower_bound(mine.begin(), mine.end(), never) - mine.begin());
    if (2 * n < each || n == 0) return {};
    return {mine[n / 4], mine[n / 2], mine[(3 * n) / 4]};
  };
  const Quartiles first = quartiles(0);
  Verdict verdict{0, first.middle, first.middle};
  for (int c = 1; c < candidates; ++c)
    if (const Quartiles q = quartiles(c); first.low < never && q.high < first.low && q.middle < verdict.seconds)
      verdict = {c, q.middle, first.middle};
  return verdict;
}

AutoLink::AutoLink(const LinkContext& context, std::vector<Trial> candidates, int turns, std::string left_out,
                   double (*clock)())
    : candidates_(std::move(candidates)), left_out_(std::move(left_out)), yield_(context.yield), clock_(clock) {
  const auto& messages = context.plan->messages;
  for (std::size_t id = 0; id < messages.size(); ++id) {
    if (!context.moves(static_cast<int>(id))) continue;
    ++messages_;
    incoming_ += !messages[id].out;
  }
  slot_count_ = static_cast<int>(context.views->front().size());
  slots_ = std::make_unique<Slot[]>(slot_count_);
  for (const Trial& candidate : candidates_) follows_ = follows_ && candidate.link->follows();
  for (int s = 0; s < slot_count_; ++s) slots_[s].link = candidates_.front().link.get();

  const auto count = static_cast<int>(candidates_.size());
  turn_ = slot_count_ + timed;
  trials_ = turns * turn_ * count;
  deadline_ = trials_ + static_cast<std::int64_t>(slot_count_) * (diameter(context) + 1);
  times_.assign(static_cast<std::size_t>(count) * turns * timed, never);
  slowest_ = times_;
  trying_ = count > 1 && messages_ > 0;
  MPI_Comm_split(context.comm, trying_ ? component(context) : MPI_UNDEFINED, 0, &comm_);
}

AutoLink::~AutoLink() {
  for (Trial& c : candidates_) c.link.reset();  // completes what is in flight on it
  if (reduction_ != MPI_REQUEST_NULL) MPI_Wait(&reduction_, MPI_STATUS_IGNORE);
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

/// Numbers the exchange that begins now in a slot, if one does, and decides which link moves it.
void AutoLink::begin(int slot) {
  const std::lock_guard lock(beginning_);
  Slot& s = slots_[slot];
  if (s.to_start > 0) return;
  s.to_start = messages_;
  s.to_unpack = incoming_;
  s.number = next_++;
  s.time = nullptr;
  if (s.number == deadline_) deadline_slot_ = slot;
  if (s.number > deadline_ && slot == deadline_slot_ && switched_at_ < 0) switched_at_ = s.number;
  Link* mover = candidates_[switched_at_ >= 0 ? verdict_.candidate : 0].link.get();
  s.link.store(s.number < trials_ ? trial(s.number, s) : mover, std::memory_order_relaxed);
  s.began = clock_();
}

/// The link that moves an exchange of the trials, and the place of its time.
Link* AutoLink::trial(std::int64_t number, Slot& s) {
  const auto count = static_cast<std::int64_t>(candidates_.size());
  const std::int64_t turn = number / turn_ / count, candidate = number / turn_ % count;
  const std::int64_t turns = trials_ / turn_ / count, place = number % turn_ - slot_count_;
  if (place >= 0) {
    s.time = &times_[static_cast<std::size_t>((candidate * turns + turn) * timed + place)];
    if (incoming_ == 0) *s.time = 0;  // the slowest rank counts, and this one does not wait
  }
  return candidates_[static_cast<std::size_t>(candidate)].link.get();
}

void AutoLink::started(Ids ids, int slot) {
  slots_[slot].to_start -= static_cast<std::int64_t>(ids.size());
  tend();
}

void AutoLink::post(Ids in, int slot) {
  if (trying_ && !in.empty()) begin(slot);
  link(slot).post(in, slot);
  if (trying_) started(in, slot);
}

/// Where nothing is received an exchange begins here.
void AutoLink::pack(Ids out, int slot, Share share) {
  if (trying_ && !out.empty()) begin(slot);
  link(slot).pack(out, slot, share);
}

void AutoLink::send(Ids out, int slot) {
  link(slot).send(out, slot);
  if (trying_) started(out, slot);
}

bool AutoLink::test(Ids in, int slot) {
  const bool may = may_end(slot);
  return link(slot).test(in, slot) && may;
}

void AutoLink::wait(Ids in, int slot) {
  for (Spin spin(yield_); deciding() && !test(in, slot);) spin.again();
  link(slot).wait(in, slot);
}

/// The first share stamps the time for all: they are equal, and run together.
void AutoLink::unpack(Ids in, int slot, Share share) {
  link(slot).unpack(in, slot, share);
  if (!trying_ || share.part != 0) return;
  Slot& s = slots_[slot];
  s.to_unpack -= static_cast<std::int64_t>(in.size());
  if (s.to_unpack == 0 && s.time != nullptr && !reducing_) *s.time = clock_() - s.began;
}

bool AutoLink::test_complete(Ids out, int slot) {
  const bool may = may_end(slot);
  return link(slot).test_complete(out, slot) && may;
}

void AutoLink::complete(Ids out, int slot) {
  for (Spin spin(yield_); deciding() && !test_complete(out, slot);) spin.again();
  link(slot).complete(out, slot);
}

/// What has arrived and been sent may count as over, unless it is the deadline's.
bool AutoLink::may_end(int slot) {
  if (!trying_) return true;
  tend();
  return decided_ || slots_[slot].number != deadline_;
}

/// Moves the decision on; never waits. On the thread that may call MPI.
void AutoLink::tend() {
  if (next_ <= trials_) return;
  if (!reducing_) {
    const int count = static_cast<int>(times_.size());
    MPI_Iallreduce(times_.data(), slowest_.data(), count, MPI_DOUBLE, MPI_MAX, comm_, &reduction_);
    reducing_ = true;
  }
  if (int done = 0; !decided_) {
    MPI_Test(&reduction_, &done, MPI_STATUS_IGNORE);
    if (!done) return;
    verdict_ = judge(slowest_, static_cast<int>(candidates_.size()));
    decided_ = true;
  }
  const auto settled = [this](const Slot& s) { return s.number < 0 || s.number >= switched_at_; };
  if (switched_at_ >= 0 && std::all_of(slots_.get(), slots_.get() + slot_count_, settled)) retire();
}

void AutoLink::retire() {
  trying_ = false;
  Trial& winner = candidates_[static_cast<std::size_t>(verdict_.candidate)];
  for (int s = 0; s < slot_count_; ++s) slots_[s].link.store(winner.link.get(), std::memory_order_relaxed);
  for (Trial& c : candidates_)
    if (&c != &winner && c.closes_alone) c.link.reset();
}

int AutoLink::open() const {
  return static_cast<int>(std::count_if(candidates_.begin(), candidates_.end(), [](auto& c) { return !!c.link; }));
}

std::string AutoLink::report() const {
  std::vector<std::string> names;
  for (const Trial& c : candidates_) names.push_back(c.name);
  const std::string& first = names.front();
  const std::string out = left_out_.empty() ? "" : "; without " + left_out_;
  const std::string after = " after " + std::to_string(trials_) + " trials of " + join(names, ", ") + out;
  if (messages_ == 0) return "auto: nothing to choose, this rank has no message";
  if (names.size() == 1) return "auto: nothing to choose but " + first + out;
  if (switched_at_ < 0) return "auto: " + first + " until it has decided" + after;
  if (verdict_.candidate == 0)
    return "auto: kept " + first + ", " + microseconds(verdict_.seconds) + ", none is faster beyond the noise" + after;
  return "auto: chose " + names[static_cast<std::size_t>(verdict_.candidate)] + ", " + microseconds(verdict_.seconds) +
         " against " + microseconds(verdict_.first_seconds) + " of " + first + after;
}

namespace {

/// What may be possible here, the same list on all ranks. Transports whose rounds are collective are not tried: they
/// would hold up an exchange of several rounds in another slot.
std::vector<std::string> candidate_names(const LinkContext& context) {
  std::vector<std::string> names{"p2p", "p2p:datatype", "persistent"};
  if (context.mine) return names;  // one part of a composite, which has chosen how the other part goes
  const Node node(context.comm, context.nodes);
  std::array<int, 2> present{};  // neighbours on this node, on others
  for (const Message& m : context.plan->messages) present[node.local(m.peer) < 0] = 1;
  MPI_Allreduce(MPI_IN_PLACE, present.data(), 2, MPI_INT, MPI_LOR, context.comm);
  const auto [near, far] = present;
  for (const char* form : {"shared:packed", "shared"})
    if (near) names.push_back(std::string(form) + (far ? "+p2p" : ""));
  return names;
}

}  // namespace

std::unique_ptr<Link> open_automatic(const LinkContext& context, const std::vector<std::string>& words) {
  std::vector<Trial> candidates;
  std::vector<std::string> left_out;
  for (const std::string& name : candidate_names(context)) try {
      candidates.push_back({name, open_link(Strategy("direct/" + name), context), name.rfind("shared", 0) != 0});
    } catch (const Error& error) {  // on all ranks alike
      if (candidates.empty()) throw;
      left_out.push_back(name + " (" + split(error.what(), ';').front() + ")");  // without what to do about it
    }
  return std::make_unique<AutoLink>(context, std::move(candidates), has(words, "quick") ? quick_turns : usual_turns,
                                    join(left_out, ", "));
}

}  // namespace haloscope
