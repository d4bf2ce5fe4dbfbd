// Ranks with a device: its two streams, and concurrently the host's thread, which enqueues work where it can and
// otherwise advances its lanes, as Runner::run_with_device does. Every operation ends with an event, since streams and
// host wait for each other.
#include <algorithm>
#include <limits>

#include "haloscope/simulate/engine.hpp"

namespace haloscope::simulate {

namespace {

constexpr double not_known = std::numeric_limits<double>::infinity();

std::size_t place(Lane lane) { return static_cast<std::size_t>(lane); }
Lane stream_lane(int stream) { return stream == 0 ? Lane::sweep_stream : Lane::halo_stream; }

/// Copies between host and device are not kernels, so concurrent sweeps keep their speed.
bool is_copy(OpKind kind) { return kind == OpKind::d2h || kind == OpKind::h2d || kind == OpKind::transfer; }

}  // namespace

// ---- the host -------------------------------------------------------------------------------------------------------

/// True if the dependencies of an operation are done, as the host sees it: of streams, enqueued operations count.
bool Engine::may_begin(int r, const Needs& needs) const {
  const Rank& rank = ranks_[r];
  bool may = rank.main >= needs[place(Lane::main)] && rank.comm >= needs[place(Lane::comm)];
  for (int s = 0; s < stream_count; ++s) may = may && device_[r].streams[s].enqueued >= needs[place(stream_lane(s))];
  return may;
}

/// Starts the next action of the host, from the rank's clock on.
void Engine::feed(int r) {
  const Rank& rank = ranks_[r];
  const auto& streams = device_[r].streams;
  if (rank.blocked == Blocked::choice) stop_asking(r);
  const auto all = [](int count, const std::vector<PricedOp>& lane) { return count == static_cast<int>(lane.size()); };
  do {
    if (hand_over(r)) return;
    const Lanes& now = lanes(rank);
    if (!all(rank.comm, now.comm) || !all(rank.main, now.main) || !all(streams[0].enqueued, now.streams[0]) ||
        !all(streams[1].enqueued, now.streams[1]))
      return choose(r);
  } while (next_fed(r));
}

/// Starts to enqueue the next operation of a stream. False where none of them may have one yet.
bool Engine::hand_over(int r) {
  Rank& rank = ranks_[r];
  Device& device = device_[r];
  const Lanes& now = lanes(rank);
  for (int s = 0; s < stream_count; ++s) {
    const int enqueued = device.streams[s].enqueued;
    if (enqueued == static_cast<int>(now.streams[s].size()) ||
        !may_begin(r, now.needs[place(stream_lane(s))][enqueued]))
      continue;
    device.feeding = HostState::handing_over;
    device.stream = static_cast<std::uint8_t>(s);
    const PricedOp& step = now.streams[s][enqueued];
    const double begin = rank.clock;
    rank.clock += step.cost.hand;
    note(r, Lane::main, begin, rank.clock, step, Activity::handing);
    push(rank.clock, r, 0, ++device.version);
    return true;
  }
  return false;
}

/// Starts the first operation of the host that can proceed, messages before computing; otherwise tries again when one
/// may.
void Engine::choose(int r) {
  Rank& rank = ranks_[r];
  Device& device = device_[r];
  const Lanes& now = lanes(rank);
  const auto may = [&](Lane lane, int at) {
    const auto& needs = now.needs[place(lane)];
    return at < static_cast<int>(needs.size()) && may_begin(r, needs[at]);
  };
  const bool comm = may(Lane::comm, rank.comm), main = may(Lane::main, rank.main);
  double soonest = not_known;
  for (const Lane lane : {Lane::comm, Lane::main}) {
    if (!(lane == Lane::comm ? comm : main)) continue;
    const int at = lane == Lane::comm ? rank.comm : rank.main;
    const PricedOp& s = (lane == Lane::comm ? now.comm : now.main)[at];
    const double ready = known_ready(r, s, now.needs[place(lane)][at], comm && main);
    if (ready <= rank.clock) {
      stop_asking(r);
      return begin_on_host(r, lane);
    }
    soonest = std::min(soonest, ready);
  }
  device.feeding = HostState::nothing;
  rank.blocked = Blocked::choice;
  ++device.version;
  if (soonest < not_known) push(soonest, r, 0, device.version);
}

/// Moves the host, which has done all of its program, to the next one; the streams may still run this one.
bool Engine::next_fed(int r) {
  Rank& rank = ranks_[r];
  Device& device = device_[r];
  const OpList& script = scripts_[rank.script];
  rank.main = rank.comm = 0;
  for (auto& stream : device.streams) stream.enqueued = 0;
  const bool more = ++device.fed < script.total(options_.rounds);
  if (more) {
    rank.program = script.program_of(device.fed, options_.rounds);
    rank.round = script.round_of(device.fed, options_.rounds);
  } else {
    rank.blocked = Blocked::no;
    if (device.met == device.fed) ++finished_;
  }
  if (device.met + 1 == device.fed) meet_streams(r, rank.clock);
  return more;
}

/// Returns the time at which an operation of the host can begin, as known now. @param ask  messages must have
/// arrived too, since the host has other work; otherwise the operation itself waits for them.
double Engine::known_ready(int r, const PricedOp& s, const Needs& needs, bool ask) {
  const Device& device = device_[r];
  double ready = 0;
  for (int stream = 0; stream < stream_count; ++stream) {
    const int needed = needs[place(stream_lane(stream))];
    if (needed == 0) continue;
    // Streams that have finished this program have done all of it.
    if (device.met < device.fed || (device.met == device.fed && device.streams[stream].done < needed)) return not_known;
    ready = std::max(ready, done_at(r, stream, needed - 1) + scripts_[ranks_[r].script].notice_s);
  }
  if (!ask) return ready;
  if (s.kind == OpKind::wait) return std::max(ready, known_arrival(r, s));
  if (s.kind == OpKind::complete && rendezvous_) {
    const double end = all_fetched(r, s);
    return end < 0 ? not_known : end > ranks_[r].clock ? std::max(ready, end) : ready;
  }
  return ready;
}

/// The time at which all messages of a wait will have advanced as far as they can without further calls; the query is a
/// call in which rendezvous messages may start. Boxes without a message are marked, so that the host tries again when
/// one leaves.
double Engine::known_arrival(int r, const PricedOp& s) {
  const OpList& script = scripts_[ranks_[r].script];
  double all = 0;
  for (std::int32_t i = s.first; i < s.first + s.count; ++i) {
    const std::int32_t m = script.messages[i];
    const Route& route = script.routes[m];
    Inbox& in = inboxes_[inbox(r, route.box)];
    if (in.head == none) {
      in.tail = awaited;
      all = not_known;
      continue;
    }
    InFlight& parcel = parcels_[in.head];
    if (parcel.arrival < 0) start_flight(r, m, parcel, ranks_[r].clock);
    const double held = route.flights[static_cast<int>(parcel.where)].held_s;
    all = std::max(all, parcel.sent + (parcel.arrival - parcel.sent - held) / options_.efficiency);
  }
  return all;
}

void Engine::stop_asking(int r) {
  Rank& rank = ranks_[r];
  rank.blocked = Blocked::no;
  const auto& comm = lanes(rank).comm;
  if (rank.comm == static_cast<int>(comm.size()) || comm[rank.comm].kind != OpKind::wait) return;
  const PricedOp& s = comm[rank.comm];
  const OpList& script = scripts_[rank.script];
  for (std::int32_t i = s.first; i < s.first + s.count; ++i)
    if (Inbox& in = inboxes_[inbox(r, script.routes[script.messages[i]].box)]; in.head == none) in.tail = none;
}

void Engine::begin_on_host(int r, Lane lane) {
  Rank& rank = ranks_[r];
  Device& device = device_[r];
  const Lanes& now = lanes(rank);
  const PricedOp& s = lane == Lane::comm ? now.comm[rank.comm] : now.main[rank.main];
  if (lane == Lane::comm && interacts(s) && !pays_first(s)) {
    if (perform(r, s)) pay(r);
    return;
  }
  device.feeding = lane == Lane::comm ? HostState::comm : HostState::main;
  work(r, s);
  push(rank.clock, r, 0, ++device.version);
}

/// The host's wait has ended, at the rank's clock; its cost comes next.
void Engine::pay(int r) {
  device_[r].feeding = HostState::paying;
  push(ranks_[r].clock, r, 0, ++device_[r].version);
}

void Engine::on_host_event(int r, double now, std::uint32_t version) {
  Rank& rank = ranks_[r];
  Device& device = device_[r];
  if (version != device.version) return;
  rank.clock = now;
  switch (device.feeding) {
    case HostState::handing_over:
      ++device.streams[device.stream].enqueued;
      begin_on_stream(r, device.stream, rank.clock);
      return feed(r);
    case HostState::paying:
      device.feeding = HostState::comm;
      work(r, comm_op(rank));
      return push(rank.clock, r, 0, ++device.version);
    case HostState::comm: {
      const PricedOp& s = comm_op(rank);
      if (interacts(s) && pays_first(s)) perform(r, s);
      ++rank.comm;
      return feed(r);
    }
    case HostState::main:
      if (const PricedOp& s = main_op(rank); reduces(s) && !perform_main(r, s)) return;
      ++rank.main;
      return feed(r);
    case HostState::nothing:
      return feed(r);
  }
}

/// Resumes the host after an event that it may be waiting for.
void Engine::host_looks(int r, double time) {
  Rank& rank = ranks_[r];
  if (rank.blocked != Blocked::choice) return;
  rank.clock = std::max(rank.clock, time);
  feed(r);
}

// ---- the streams ----------------------------------------------------------------------------------------------------

/// The lanes of the program that the streams run.
const Lanes& Engine::streamed(int r) const {
  const OpList& script = scripts_[ranks_[r].script];
  return script.programs[static_cast<std::size_t>(script.program_of(device_[r].met, options_.rounds))];
}

/// Starts the next operation of a stream, if it has been enqueued and its dependencies on the other stream are done.
void Engine::begin_on_stream(int r, int s, double now) {
  Device& device = device_[r];
  Device::Stream& stream = device.streams[s];
  if (stream.working || device.met == scripts_[ranks_[r].script].total(options_.rounds)) return;
  const Lanes& program = streamed(r);
  if (device.met > device.fed || (device.met == device.fed && stream.done >= stream.enqueued)) return;
  if (stream.done == static_cast<int>(program.streams[s].size())) return;
  const int other = 1 - s;
  if (device.streams[other].done < program.needs[place(stream_lane(s))][stream.done][place(stream_lane(other))]) return;
  const PricedOp& step = program.streams[s][stream.done];
  stream.working = true;
  stream.begun = now;
  const double late = delay(r, step.cost.seconds);
  if (s == 0 && step.kind == OpKind::sweep) {
    device.sweep.begin(now, late, step.cost.seconds);
    return push(device.sweep.end(sweep_pace(r)), r, 1, ++stream.version);
  }
  if (s == 1) kernel_beside(r, now, !is_copy(step.kind));
  push(now + step.cost.seconds + late, r, 1 + s, ++stream.version);
}

double Engine::sweep_pace(int r) const {
  const Device& device = device_[r];
  const OpSeconds& cost = streamed(r).streams[0][device.streams[0].done].cost;
  return device.beside ? cost.busy : cost.idle;
}

/// Begins or ends a kernel of the halo stream: the speed of a concurrent sweep changes.
void Engine::kernel_beside(int r, double now, bool at_work) {
  Device& device = device_[r];
  if (device.beside == at_work) return;
  Device::Stream& sweeps = device.streams[0];
  const bool sweeping = sweeps.working && streamed(r).streams[0][sweeps.done].kind == OpKind::sweep;
  if (sweeping) device.sweep.go_on(now, sweep_pace(r));
  device.beside = at_work;
  if (sweeping) push(device.sweep.end(sweep_pace(r)), r, 1, ++sweeps.version);
}

void Engine::on_stream_event(int r, int s, double now, std::uint32_t version) {
  Device& device = device_[r];
  Device::Stream& stream = device.streams[s];
  if (version != stream.version) return;
  const PricedOp& step = streamed(r).streams[s][stream.done];
  ++result_.operations;
  note(r, stream_lane(s), stream.begun, now, step, Activity::working);
  if (scripts_[ranks_[r].script].round_of(device.met, options_.rounds) >= options_.counted_from)
    result_.seconds[static_cast<int>(step.kind)] += now - stream.begun;
  stream.working = false;
  done_at(r, s, stream.done++) = now;
  begin_on_stream(r, s, now);
  begin_on_stream(r, 1 - s, now);
  if (s == 1 && !stream.working) kernel_beside(r, now, false);
  meet_streams(r, now);
  host_looks(r, now);
}

/// Moves both streams to the next program together, once both have finished one. A program without operations for them
/// ends with the host's part.
void Engine::meet_streams(int r, double now) {
  Device& device = device_[r];
  const OpList& script = scripts_[ranks_[r].script];
  const int total = script.total(options_.rounds);
  while (device.met < total) {
    const auto& streams = streamed(r).streams;
    bool any = false;
    for (int s = 0; s < stream_count; ++s) {
      if (device.streams[s].done < static_cast<int>(streams[s].size())) return;
      any = any || !streams[s].empty();
    }
    if (!any && device.fed <= device.met) return;
    const int round = script.round_of(device.met, options_.rounds);
    if (++device.met >= script.opening + script.body)  // a round ends with the last of its programs
      result_.ends[static_cast<std::size_t>(round) * ranks_.size() + r] = now;
    for (auto& stream : device.streams) stream.done = 0;
    if (device.met == total && device.fed == device.met) ++finished_;
    for (int s = 0; s < stream_count; ++s) begin_on_stream(r, s, now);
  }
}

}  // namespace haloscope::simulate
