// The operations of one exchange. Own-neighbour halos that outgoing messages contain are filled first, all others
// while messages are in flight.
#include <algorithm>
#include <utility>

#include "haloscope/core/plan_rounds.hpp"
#include "haloscope/schedule/builder.hpp"

namespace haloscope {

namespace {

/// Copies of own neighbours and of edges, by the time at which they can run. `late` has one list for each round,
/// which runs after earlier rounds have been unpacked, and one for after all rounds.
struct SplitCopies {
  std::vector<Copy> urgent;     ///< before the first round's messages are packed
  std::vector<Copy> in_flight;  ///< while they are in flight
  std::vector<std::vector<Copy>> late;
};

bool has_messages(const Plan& plan, int round) {
  return std::any_of(plan.messages.begin(), plan.messages.end(), [&](const Message& m) { return m.round == round; });
}

/// Returns true if a field is sent in a round.
bool moves(const Plan& plan, int round, int quantity) {
  const int field = place_of(plan, round).field;
  return field < 0 || field == quantity;
}

std::vector<Copy> pieces(const Copy& copy, const std::vector<Box>& boxes) {
  std::vector<Copy> list;
  for (const Box& box : boxes) {
    Copy piece = copy;
    piece.to = box;
    if (!box.empty()) list.push_back(piece);
  }
  return list;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Splits a copy before the first round with messages: the slabs that those messages contain come first.
void split_before(const Plan& plan, const Copy& copy, int dimension, SplitCopies& split) {
  if (dimension == 0) return append(split.urgent, {copy});  // slabs in x would cut contiguous rows
  const int s = staggered(plan.spec.quantities[copy.quantity].centring, dimension);
  const std::int64_t low_end = s + plan.spec.high_of(copy.quantity)[dimension];
  const std::int64_t high_begin =
      std::max(low_end, plan.block_of(copy.quantity).cells[dimension] - plan.spec.low_of(copy.quantity)[dimension]);
  Box low = copy.to, middle = copy.to, high = copy.to;
  low.hi[dimension] = std::clamp(low_end, low.lo[dimension], low.hi[dimension]);
  middle.lo[dimension] = low.hi[dimension];
  middle.hi[dimension] = std::clamp(high_begin, middle.lo[dimension], middle.hi[dimension]);
  high.lo[dimension] = middle.hi[dimension];
  append(split.urgent, pieces(copy, {low, high}));
  append(split.in_flight, pieces(copy, {middle}));
}

/// Splits a copy after rounds with messages: its part that does not read the halos of those rounds need not wait for
/// them.
void split_after(const Plan& plan, const Copy& copy, const std::vector<int>& remote_before, SplitCopies& split) {
  const PlanBlock& block = plan.block_of(copy.quantity);
  Box early = copy.to;
  for (int d : remote_before) {
    if (plan.own_neighbour[d]) continue;
    const int s = staggered(plan.spec.quantities[copy.quantity].centring, d);
    if (block.has_neighbour[d][0]) early.lo[d] = std::max<std::int64_t>(early.lo[d], 0);
    if (block.has_neighbour[d][1]) early.hi[d] = std::min<std::int64_t>(early.hi[d], block.cells[d] + s);
  }
  append(split.in_flight, pieces(copy, {early}));
  append(split.late[copy.round], pieces(copy, subtract(copy.to, early)));
}

/// Returns the number of rounds that may be in flight while the next one is packed.
int under_way(const Plan& plan) { return plan.spec.merge == Merge::pipelined ? 1 : 0; }

/// Returns the round that must have been received before round r is packed, since r sends its data on; -1: none.
int last_before(const Plan& plan, int r) {
  for (int before = r - 1; before >= 0; --before)
    if (moves(plan, before, std::max(0, place_of(plan, r).field))) return before;
  return -1;
}

/// Returns true if a message or a copy after round r passes on cells that arrive in it.
bool is_passed_on(const Plan& plan, const SplitCopies& copies, int r) {
  const bool copied =
      std::any_of(copies.late.begin() + r + 1, copies.late.end(), [](const auto& c) { return !c.empty(); });
  return copied || std::any_of(plan.messages.begin(), plan.messages.end(),
                               [&](const Message& m) { return m.out && m.round > r && !holds_own_cells(plan, m); });
}

SplitCopies split_copies(const Plan& plan) {
  SplitCopies split;
  split.late.resize(plan.rounds + 1);
  std::vector<std::vector<int>> dimensions_of_step;
  for (int d : plan.spec.order)
    if (d < plan.dims) dimensions_of_step.push_back({d});
  if (plan.spec.pattern == Pattern::direct) dimensions_of_step = {{0, 1, 2}};
  int first = 0;
  while (first < plan.rounds && !has_messages(plan, first)) ++first;
  for (const Copy& copy : plan.copies) {
    std::vector<int> remote_before;
    for (int r = 0; r < copy.round; ++r)
      if (has_messages(plan, r) && moves(plan, r, copy.quantity))
        append(remote_before, dimensions_of_step[place_of(plan, r).step]);
    if (plan.meets_itself() && copy.round == plan.rounds)  // it reads points that arrive across a fold or seam
      append(split.late[copy.round], {copy});
    else if (first == plan.rounds)
      append(split.urgent, {copy});
    else if (copy.round < first)
      split_before(plan, copy, dimensions_of_step[place_of(plan, first).step].front(), split);
    else
      split_after(plan, copy, remote_before, split);
  }
  return split;
}

}  // namespace

ExchangeOps ProgramBuilder::exchange(bool unpacked) {
  ExchangeOps result;
  SplitCopies copies = split_copies(plan_);
  int first = 0;
  while (first < plan_.rounds && !has_messages(plan_, first)) ++first;
  first = std::min(first, plan_.rounds - 1);

  int last = -1, last_packed = -1, received = 0;
  const auto keep = [&last](int op) { last = op >= 0 ? op : last; };
  const auto receive_up_to = [&](int rounds) {
    for (; received < rounds; ++received) {
      const int wait = add_messages(OpKind::wait, received, false);
      keep(wait);
      if (options_.staged) keep(add_messages(OpKind::h2d, received, false));
      if (unpacked || is_passed_on(plan_, copies, received)) keep(add_messages(OpKind::unpack, received, false));
      if (received + 1 == plan_.rounds) keep(add_copies(copies.late[plan_.rounds]));
      waits_.push_back(wait >= 0 ? wait : last);
      result.received.push_back(last);
    }
  };
  if (options_.barrier) keep(add(OpKind::barrier, Lane::comm, 0, -1));
  keep(add_messages(OpKind::post, -1, false));
  if (options_.signals) append(copies.urgent, std::exchange(copies.in_flight, {}));  // its stream waits with the kernel
  keep(result.local = add_copies(copies.urgent));
  for (int r = 0; r < plan_.rounds; ++r) {
    receive_up_to(last_before(plan_, r) + 1);
    keep(add_copies(copies.late[r]));
    const int pack = add_messages(OpKind::pack, r, true);
    keep(pack);
    last_packed = std::max(last_packed, pack);
    if (r == first && !options_.signals) result.first_packed = pack;
    if (options_.staged) keep(add_messages(OpKind::d2h, r, true));
    keep(add_messages(OpKind::send, r, true));
    if (r == first) result.in_flight = last;
    if (r == first && !copies.in_flight.empty()) keep(result.local = add_copies(copies.in_flight));
    result.sent.push_back(last);
    receive_up_to(r + 1 - under_way(plan_));
  }
  receive_up_to(plan_.rounds);
  result.complete = all_sent_ = add_messages(OpKind::complete, -1, true);
  if (options_.device) result.complete = last_packed;  // messages are sent from buffers
  complete_ = result.complete;
  return result;
}

void ProgramBuilder::reverse_exchange() {
  const auto add_those_of = [&](int round) {
    std::vector<Copy> now;
    for (const Copy& copy : plan_.copies)
      if (copy.round == round) now.push_back(copy);
    add_copies(now);
  };
  add_messages(OpKind::post, -1, false);
  add_those_of(-1);
  for (int r = 0; r < plan_.rounds; ++r) {
    add_messages(OpKind::pack, r, true);
    if (options_.staged) add_messages(OpKind::d2h, r, true);
    add_messages(OpKind::send, r, true);
    add_messages(OpKind::wait, r, false);
    if (options_.staged) add_messages(OpKind::h2d, r, false);
    add_messages(OpKind::unpack, r, false);
    add_those_of(r);
  }
  add_messages(OpKind::complete, -1, true);
  add_those_of(plan_.rounds);
}

Program exchange_program(const Plan& plan, bool barrier, bool collective_rounds) {
  ScheduleOptions options;
  options.barrier = barrier;
  options.collective_rounds = collective_rounds;
  return exchange_program(plan, options);
}

Program exchange_program(const Plan& plan, const ScheduleOptions& options) {
  const Stage nothing;
  ProgramBuilder builder(nothing, plan, options);
  if (plan.spec.reverse())
    builder.reverse_exchange();
  else
    builder.exchange();
  builder.program().final_slot = 0;
  builder.program().steps = 0;
  return builder.take();
}

}  // namespace haloscope
