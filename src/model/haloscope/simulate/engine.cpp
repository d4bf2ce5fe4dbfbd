// The order of operations with one control thread, as Runner::run_fork_join has it, and the operations themselves.
#include "haloscope/simulate/engine.hpp"

#include <algorithm>
#include <cmath>

namespace haloscope::simulate {

namespace {

/// A number in (0, 1] that depends only on the three arguments. Source: splitmix64, Steele et al. 2014.
double uniform(std::uint64_t seed, std::uint64_t rank, std::uint64_t number) {
  std::uint64_t z = seed * 0xD1342543DE82EF95u + (rank << 32 | number) + 1;
  for (int pass = 0; pass < 2; ++pass) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
  }
  return (static_cast<double>(z >> 11) + 1) * 0x1p-53;
}

}  // namespace

// ---- order ----------------------------------------------------------------------------------------------------------

double Engine::delay(int r, double seconds) {
  const double mean = options_.noise_s + options_.noise_share * seconds;
  if (mean <= 0 || seconds <= 0) return 0;
  return -mean * std::log(uniform(options_.seed, static_cast<std::uint64_t>(r), ranks_[r].drawn++));
}

/// Returns the seconds of an operation, its delay included; adds them to the totals.
double Engine::spend(int r, const PricedOp& step) {
  ++result_.operations;
  const double seconds = step.cost.seconds + delay(r, step.cost.seconds);
  count(r, step.kind, seconds);
  return seconds;
}

/// Keeps the rank's thread, or its communication thread, busy with an operation.
void Engine::work(int r, const PricedOp& s) {
  Rank& rank = ranks_[r];
  const double begin = rank.clock;
  rank.clock += spend(r, s);
  note(r, begin, rank.clock, s, Activity::working);
}

/// Returns the thread of an operation of the host: one thread has both lanes, and a communication thread reduces for
/// all.
Lane Engine::lane_of(int r, const PricedOp& s) const {
  return lanes(ranks_[r]).comm_thread && !reduces(s) ? Lane::comm : Lane::main;
}

void Engine::start(int r) {
  if (lanes(ranks_[r]).device)
    feed(r);
  else if (lanes(ranks_[r]).comm_thread)
    start_team(r);
  else
    advance(r);
}

/// Moves a rank whose program has ended to its next one. False when it was the last.
bool Engine::next_program(int r) {
  Rank& rank = ranks_[r];
  const OpList& script = scripts_[rank.script];
  rank.main = rank.comm = rank.target = 0;
  if (++rank.program == script.opening + script.body) {
    result_.ends[static_cast<std::size_t>(rank.round) * ranks_.size() + r] = rank.clock;
    if (++rank.round < options_.rounds) rank.program = script.opening;
  }
  if (rank.program < static_cast<int>(script.programs.size())) return true;
  ++finished_;
  return false;
}

/// Advances from the rank's clock to the next operation that involves other ranks.
void Engine::advance(int r) {
  Rank& rank = ranks_[r];
  for (;;) {
    const Lanes& now = lanes(rank);  // of the current program
    if (rank.comm < rank.target) {
      const PricedOp& s = now.comm[rank.comm];
      if (interacts(s)) {
        if (pays_first(s)) work(r, s);
        return push(rank.clock, r);
      }
      work(r, s);
      ++rank.comm;
    } else if (rank.main < static_cast<int>(now.main.size())) {
      const PricedOp& s = now.main[rank.main];
      if (s.needs > rank.comm) {
        rank.target = s.needs;
        continue;
      }
      work(r, s);
      if (reduces(s)) {
        rank.reducing = true;
        return push(rank.clock, r);
      }
      const bool more = rank.comm < static_cast<int>(now.comm.size()) && now.comm[rank.comm].needs <= rank.main;
      if (s.kind == OpKind::progress && more) {
        rank.asking = true;
        return push(rank.clock, r);
      }
      ++rank.main;
    } else if (rank.comm < static_cast<int>(now.comm.size())) {
      rank.target = static_cast<std::int32_t>(now.comm.size());
    } else {
      if (!next_program(r)) return;
      if (lanes(rank).comm_thread) return start_team(r);
    }
  }
}

void Engine::on_event(int r) {
  Rank& rank = ranks_[r];
  if (lanes(rank).comm_thread) return on_comm_event(r);
  if (rank.asking) return ask(r);
  if (rank.reducing) {
    rank.reducing = false;
    if (!perform_main(r, main_op(rank))) return;
    ++rank.main;
    return advance(r);
  }
  const PricedOp& s = comm_op(rank);
  if (!perform(r, s)) return;
  performed(r, s);
  advance(r);
}

/// Completes an operation of the comm lane that others see; the cost of a wait passes after it.
void Engine::performed(int r, const PricedOp& s) {
  if (!pays_first(s)) work(r, s);
  ++ranks_[r].comm;
}

/// At `progress`: runs the comm lane as far as it needs no waiting.
void Engine::ask(int r) {
  Rank& rank = ranks_[r];
  const Lanes& now = lanes(rank);
  const double begin = rank.clock;
  while (rank.comm < static_cast<int>(now.comm.size())) {
    const PricedOp& s = now.comm[rank.comm];
    if (s.needs > rank.main || s.kind == OpKind::barrier) break;
    if (!interacts(s)) {
      work(r, s);
      ++rank.comm;
      continue;
    }
    if (pays_first(s) && !rank.charged) {
      rank.charged = true;
      work(r, s);
    }
    if (rank.clock > begin) return push(rank.clock, r);  // others may have acted meanwhile
    if (!pays_first(s) && !test(r, s)) break;
    rank.charged = false;
    perform(r, s);
    performed(r, s);
  }
  rank.asking = false;
  ++rank.main;
  advance(r);
}

/// Runs an operation that others see, from the rank's clock on. False: the rank is blocked until resume().
bool Engine::perform(int r, const PricedOp& s) {
  if (s.kind != OpKind::send && s.kind != OpKind::wait) ++result_.events;
  switch (s.kind) {
    case OpKind::send:
      send(r, s);
      return true;
    case OpKind::post:
      post(r, s);
      return true;
    case OpKind::wait:
      return wait(r, s);
    case OpKind::complete:
      return complete(r, s);
    default:
      return meet(r);
  }
}

/// Contributes numbers to a reduction, or waits for it. False: the rank is blocked until resume_main().
bool Engine::perform_main(int r, const PricedOp& s) {
  ++result_.events;
  return s.kind == OpKind::reduce ? reduce(r, s) : reduced(r, s);
}

/// Ends the wait of an operation.
void Engine::release(int r, const PricedOp& s, const Until& until) {
  Rank& rank = ranks_[r];
  count(r, s.kind, until.end - rank.clock);
  note(r, rank.clock, until.late, s, Activity::late);
  note(r, until.late, until.end, s, reduces(s) ? Activity::reducing : Activity::travelling);
  rank.clock = until.end;
  rank.blocked = Blocked::no;
}

/// Resumes a blocked rank.
void Engine::resume(int r, const Until& until) {
  Rank& rank = ranks_[r];
  const PricedOp& s = comm_op(rank);
  release(r, s, until);
  if (lanes(rank).device) return pay(r);
  if (lanes(rank).comm_thread) {
    rank.phase = Phase::spend;
    return push(until.end, r);
  }
  performed(r, s);
  advance(r);
}

/// Resumes a rank whose main lane waited for a reduction.
void Engine::resume_main(int r, const Until& until) {
  Rank& rank = ranks_[r];
  release(r, main_op(rank), until);
  ++rank.main;
  if (lanes(rank).device) return feed(r);
  if (lanes(rank).comm_thread) {
    team_[r].reducing = false;
    begin_main(r, until.end);
    if (team_[r].done) join(r, until.end);
    return;
  }
  advance(r);
}

// ---- operations -----------------------------------------------------------------------------------------------------

void Engine::send(int r, const PricedOp& s) {
  Rank& rank = ranks_[r];
  const OpList& script = scripts_[rank.script];
  const auto place = place_of(r);
  result_.messages += s.count;
  result_.events += s.count;
  const auto end_of = [&](std::int32_t i) {
    const std::int32_t m = script.messages[i];
    const End to = other_end(r, place, script.routes[m], m);
    __builtin_prefetch(&inboxes_[inbox(to.rank, to.box)]);
    return to;
  };
  const std::int32_t last = s.first + s.count - 1;
  End next = s.count > 0 ? end_of(s.first) : End{};
  for (std::int32_t i = s.first; i <= last; ++i) {
    const Route& route = script.routes[script.messages[i]];
    const End to = next;
    if (i < last) next = end_of(i + 1);
    const Locality where = wires_.between(r, to.rank);
    const Flight& flight = route.flights[static_cast<int>(where)];
    rank.clock += flight.overhead_send_s;
    count(r, OpKind::send, flight.overhead_send_s);
    const double depart = std::max(rank.clock, rank.next_send);
    rank.next_send = depart + flight.gap_s;
    result_.bytes += route.bytes;
    deliver(r, to, route, flight, where, depart);
  }
}

std::int32_t Engine::new_parcel(const InFlight& parcel) {
  if (free_ == none) {
    parcels_.push_back(parcel);
    return static_cast<std::int32_t>(parcels_.size()) - 1;
  }
  const std::int32_t at = free_;
  free_ = parcels_[at].next;
  parcels_[at] = parcel;
  return at;
}

void Engine::deliver(int from, const End& to, const Route& route, const Flight& flight, Locality where, double depart) {
  Inbox& in = inboxes_[inbox(to.rank, to.box)];
  const bool waited_for = in.tail == awaited, first = in.head == none;
  bool travels = true;
  if (flight.rendezvous) {
    ++outboxes_[outbox(from, route.box)].unfetched;
    travels = waited_for || (posting_ && first && posted_[inbox(to.rank, to.box)]);
  }
  const double there = travels ? wires_.arrival(from, to.rank, where, flight, route.bytes, depart) : -1;
  const std::int32_t parcel = new_parcel({depart, there, none, where});
  if (first)
    in.head = parcel;
  else
    parcels_[in.tail].next = parcel;
  in.tail = parcel;
  if (!waited_for) return;
  Rank& receiver = ranks_[to.rank];
  if (receiver.blocked == Blocked::choice) return host_looks(to.rank, depart);
  if (flight.rendezvous) fetched({from, route.box}, there);
  if (--receiver.missing > 0) return;
  resume(to.rank, received(to.rank, comm_op(receiver)));
}

/// Starts the flight of a rendezvous message to `r`.
void Engine::start_flight(int r, std::int32_t message, InFlight& parcel, double time) {
  const Route& route = scripts_[ranks_[r].script].routes[message];
  const int from = other_end(r, place_of(r), route, message).rank;
  const Locality where = parcel.where;
  parcel.sent = std::max(parcel.sent, time);
  parcel.arrival = wires_.arrival(from, r, where, route.flights[static_cast<int>(where)], route.bytes, parcel.sent);
}

void Engine::post(int r, const PricedOp& s) {
  if (!posting_) return;
  const OpList& script = scripts_[ranks_[r].script];
  for (std::int32_t i = s.first; i < s.first + s.count; ++i) {
    const std::int32_t m = script.messages[i];
    const std::size_t box = inbox(r, script.routes[m].box);
    posted_[box] = 1;
    if (inboxes_[box].head < 0) continue;
    InFlight& parcel = parcels_[inboxes_[box].head];
    if (parcel.arrival < 0) start_flight(r, m, parcel, ranks_[r].clock);
  }
}

/// Waits until the first message of every box has arrived; the arrival of messages that have left is known.
bool Engine::wait(int r, const PricedOp& s) {
  Rank& rank = ranks_[r];
  const OpList& script = scripts_[rank.script];
  rank.missing = 0;
  for (std::int32_t i = s.first; i < s.first + s.count; ++i) {
    const std::int32_t m = script.messages[i];
    const Route& route = script.routes[m];
    Inbox& in = inboxes_[inbox(r, route.box)];
    if (in.head == none) {
      in.tail = awaited;
      ++rank.missing;
      continue;
    }
    InFlight& parcel = parcels_[in.head];
    if (parcel.arrival < 0) start_flight(r, m, parcel, rank.clock);
    if (!rendezvous_) continue;
    const Flight& flight = route.flights[static_cast<int>(parcel.where)];
    if (flight.rendezvous) fetched(other_end(r, place_of(r), route, m), arrival(r, flight, parcel));
  }
  rank.blocked = Blocked::wait;
  if (rank.missing > 0) return false;
  release(r, s, received(r, s));
  return true;
}

/// Takes the messages of a wait that began at the rank's clock, all of which have left; returns the time of the last
/// arrival.
Engine::Until Engine::received(int r, const PricedOp& s) {
  const OpList& script = scripts_[ranks_[r].script];
  const double begin = ranks_[r].clock;
  Until until{begin, begin};
  double longest = 0;
  result_.events += s.count;
  for (std::int32_t i = s.first; i < s.first + s.count; ++i) {
    const Route& route = script.routes[script.messages[i]];
    Inbox& in = inboxes_[inbox(r, route.box)];
    const std::int32_t at = in.head;
    const InFlight parcel = parcels_[at];
    const Flight& flight = route.flights[static_cast<int>(parcel.where)];
    const double there = arrival(r, flight, parcel);
    if (there > until.end) until.late = std::max(begin, std::min(parcel.sent, there));
    until.end = std::max(until.end, there) + flight.overhead_receive_s;
    longest = std::max(longest, flight.seconds);
    in.head = parcel.next;
    if (in.head == none) in.tail = none;
    parcels_[at].next = free_;
    free_ = at;
    if (posting_) posted_[inbox(r, route.box)] = 0;
  }
  if (!logs_.empty()) logs_[r].received.push_back({until.end, longest});
  return until;
}

/// The arrival time of a message in flight for a receiver that only waits from its clock on.
double Engine::arrival(int r, const Flight& flight, const InFlight& parcel) const {
  const double begin = ranks_[r].clock;
  if (parcel.sent >= begin) return parcel.arrival;
  // The message has travelled while the rank was not in a call.
  const double left = parcel.arrival - parcel.sent - options_.efficiency * (begin - parcel.sent);
  return begin + std::max(flight.held_s, left);
}

/// Records that the receiver has a rendezvous message at a time that is now known.
void Engine::fetched(const End& from, double time) {
  Outbox& out = outboxes_[outbox(from.rank, from.box)];
  --out.unfetched;
  out.last = std::max(out.last, time);
  const Rank& sender = ranks_[from.rank];
  if (sender.blocked == Blocked::choice) return host_looks(from.rank, now_);
  if (sender.blocked != Blocked::complete) return;
  const double end = all_fetched(from.rank, comm_op(sender));
  if (end >= 0) resume(from.rank, {sender.clock, end});
}

/// The time by which all of the rank's rendezvous messages of a set have been received, at the earliest its clock; < 0:
/// some have not.
double Engine::all_fetched(int r, const PricedOp& s) const {
  const OpList& script = scripts_[ranks_[r].script];
  double end = ranks_[r].clock;
  for (std::int32_t i = s.first; i < s.first + s.count; ++i) {
    const Outbox& out = outboxes_[outbox(r, script.routes[script.messages[i]].box)];
    if (out.unfetched > 0) return -1;
    end = std::max(end, out.last);
  }
  return end;
}

/// Waits until rendezvous messages have been received; others were copied when they were sent.
bool Engine::complete(int r, const PricedOp& s) {
  ranks_[r].blocked = Blocked::complete;
  const double end = all_fetched(r, s);
  if (end < 0) return false;
  release(r, s, {ranks_[r].clock, end});
  return true;
}

/// True if a wait or complete could end now, apart from receiver-side parts of flights; the test itself is a call in
/// which rendezvous messages may start.
bool Engine::test(int r, const PricedOp& s) {
  const Rank& rank = ranks_[r];
  const OpList& script = scripts_[rank.script];
  if (s.kind == OpKind::complete) return all_fetched(r, s) == rank.clock;
  ++result_.events;
  bool all = true;
  for (std::int32_t i = s.first; i < s.first + s.count; ++i) {
    const std::int32_t m = script.messages[i];
    const Route& route = script.routes[m];
    const Inbox& in = inboxes_[inbox(r, route.box)];
    if (in.head == none || parcels_[in.head].sent > rank.clock) {
      all = false;
      continue;
    }
    InFlight& parcel = parcels_[in.head];
    if (parcel.arrival < 0) start_flight(r, m, parcel, rank.clock);
    const Flight& flight = route.flights[static_cast<int>(parcel.where)];
    const double left = (parcel.arrival - parcel.sent - flight.held_s) * (1 - 1e-12);
    all = all && options_.efficiency * (rank.clock - parcel.sent) >= left;
  }
  return all;
}

/// Enters a barrier of all ranks.
bool Engine::meet(int r) {
  ranks_[r].blocked = Blocked::barrier;
  met_.push_back(r);
  if (met_.size() < ranks_.size()) return false;
  const double now = ranks_[r].clock;  // events come in order of time: this is the last
  std::vector<std::int32_t> all;
  all.swap(met_);
  met_.reserve(all.size());
  for (const std::int32_t other : all)
    if (other != r) resume(other, {now, now});
  release(r, comm_op(ranks_[r]), {now, now});
  return true;
}

/// Contributes the rank's numbers to the next execution of a reduction. The last rank's numbers release all waiting
/// ranks.
bool Engine::reduce(int r, const PricedOp& s) {
  const RankReduction& reduction = scripts_[ranks_[r].script].reductions[static_cast<std::size_t>(s.first)];
  auto& meetings = meetings_[static_cast<std::size_t>(s.first)];
  std::int32_t& mine = contributions_[static_cast<std::size_t>(r) * reductions_ + s.first];
  if (mine == static_cast<std::int32_t>(meetings.size())) meetings.emplace_back();
  ReductionState& meeting = meetings[static_cast<std::size_t>(mine++)];
  meeting.last = ranks_[r].clock;  // events come in order of time
  if (++meeting.contributed == static_cast<std::int32_t>(ranks_.size())) {
    std::vector<std::int32_t> all;
    all.swap(meeting.waiting);
    for (const std::int32_t other : all) resume_main(other, combined(other, meeting, reduction));
  }
  return !reduction.waits || reduced(r, s);
}

/// The time at which a waiting rank has the result of a reduction that all ranks have entered.
Engine::Until Engine::combined(int r, const ReductionState& meeting, const RankReduction& reduction) const {
  const double clock = ranks_[r].clock;
  return {std::max(clock, meeting.last), std::max(clock, meeting.last + reduction.seconds)};
}

/// Waits until the numbers that the rank contributed last are combined; returns immediately when it has contributed
/// none.
bool Engine::reduced(int r, const PricedOp& s) {
  Rank& rank = ranks_[r];
  const std::int32_t mine = contributions_[static_cast<std::size_t>(r) * reductions_ + s.first];
  if (mine == 0) return true;
  ReductionState& meeting = meetings_[static_cast<std::size_t>(s.first)][static_cast<std::size_t>(mine - 1)];
  if (meeting.contributed < static_cast<std::int32_t>(ranks_.size())) {
    rank.blocked = Blocked::reduction;
    meeting.waiting.push_back(r);
    return false;
  }
  release(r, s, combined(r, meeting, scripts_[rank.script].reductions[static_cast<std::size_t>(s.first)]));
  return true;
}

}  // namespace haloscope::simulate
