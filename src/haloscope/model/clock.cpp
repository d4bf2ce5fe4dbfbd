#include "haloscope/model/clock.hpp"

#include <algorithm>
#include <functional>

namespace haloscope::model {

namespace {

constexpr double arrived = 1 - 1e-12;  // of a flight: rounding must not cost a call

std::size_t index(int number) { return static_cast<std::size_t>(number); }

}  // namespace

Stuck::Stuck()
    : Error(Exit::failed, "the ranks wait for each other forever; this is a fault in the program, please report it") {}

Clock::Clock(const std::vector<Track>& tracks, int rounds) : states_(tracks.size()) {
  int messages = 0, done = 0;
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    State& state = states_[t];
    const DoneKeys keys{static_cast<int>(tracks[t].body.size())};
    state.track = &tracks[t];
    state.first_message = messages;
    state.first_done = done;
    state.finished.resize(index(keys.count()));
    state.done_at.resize(index(keys.count()));
    messages += static_cast<int>(std::max(tracks[t].flights.size(), tracks[t].sources.size()));
    done += keys.count();
  }
  senders_.resize(index(messages));
  receivers_.resize(index(messages));
  blocked_.resize(index(2 * messages + done));
  const auto times = static_cast<std::size_t>(rounds) + 1;
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    connect(static_cast<int>(t));
    for (std::size_t m = 0; m < tracks[t].flights.size(); ++m)
      sender(states_[t], static_cast<int>(m)).departures.reserve(times);
    states_[t].log.ends.reserve(times);
    states_[t].log.lanes[static_cast<std::size_t>(Lane::main)].reserve(tracks[t].body.size() * times);
  }
  actors_.reserve(4 * tracks.size());
  events_.reserve(8 * tracks.size());
  for (std::size_t t = 0; t < tracks.size(); ++t)
    for (auto& [lane, walk] : walk_lanes(tracks[t], rounds)) {
      states_[t].actors[static_cast<std::size_t>(lane)] = static_cast<int>(actors_.size());
      actors_.push_back({static_cast<int>(t), lane, std::move(walk)});
      at(0, static_cast<int>(actors_.size()) - 1);
    }
}

/// Routes of a track's incoming messages.
void Clock::connect(int track) {
  const State& state = states_[index(track)];
  for (std::size_t m = 0; m < state.track->sources.size(); ++m)
    for (const Source& source : state.track->sources[m]) {
      const State& from = states_[index(source.from)];
      Sender& sends = sender(from, source.message);
      const std::pair own{track, static_cast<int>(m)};
      auto known = std::find(sends.receivers.begin(), sends.receivers.end(), own);
      if (known == sends.receivers.end()) {
        known = sends.receivers.insert(known, own);
        sends.delivered.emplace_back();
      }
      receiver(state, own.second)
          .routes.push_back({from.first_message + source.message, static_cast<int>(known - sends.receivers.begin()),
                             from.track->flights[index(source.message)]});
    }
}

void Clock::at(double time, int actor, int answer) {
  events_.push_back({time, count_++, actor, actors_[index(actor)].version, answer});
  std::push_heap(events_.begin(), events_.end(), std::greater<>{});
}

std::vector<Log> Clock::run() {
  while (!events_.empty()) {
    std::pop_heap(events_.begin(), events_.end(), std::greater<>{});
    const Event event = events_.back();
    events_.pop_back();
    Actor& actor = actors_[index(event.actor)];
    if (event.version != actor.version) continue;
    if (actor.blocked)  // woken: look again
      serve(event.time, event.actor);
    else
      go_on(event.time, event.actor, event.answer);
  }
  std::vector<Log> logs;
  for (const Actor& actor : actors_)
    if (actor.blocked) throw Stuck();
  for (State& state : states_) logs.push_back(std::move(state.log));
  return logs;
}

void Clock::go_on(double now, int number, int answer) {
  Actor& actor = actors_[index(number)];
  if (state_of(number).sweeping.actor == number) end_sweep(now, number);
  change_beside(now, number, Beside::busy);
  actor.request = actor.walk.resume(answer);
  if (!actor.request) return;
  actor.since = now;
  serve(now, number);
}

/// Answers a request now, or leaves the actor blocked on what it needs.
void Clock::serve(double now, int number) {
  Actor& actor = actors_[index(number)];
  actor.blocked = false;
  switch (actor.request->kind) {
    case Request::Kind::work:
      return work(now, number);
    case Request::Kind::copying:
      change_beside(now, number, Beside::idle);
      return work(now, number);
    case Request::Kind::send:
      return send(now, number);
    case Request::Kind::wait:
      return wait(now, number);
    case Request::Kind::complete:
      return complete(now, number);
    case Request::Kind::test:
      return test(now, number);
    case Request::Kind::choose:
      return choose(now, number);
    case Request::Kind::barrier:
      return meet_barrier(now, number);
    case Request::Kind::reduce:
      return give_numbers(now, number);
    case Request::Kind::reduced:
      return take_numbers(now, number);
    case Request::Kind::sweep:
      return begin_sweep(now, number);
    case Request::Kind::after:
      return wait_for_lanes(now, number);
    case Request::Kind::done:
      return finish(now, number);
    case Request::Kind::join:
      return join(now, number);
    case Request::Kind::round:
      state_of(number).log.ends.push_back(now);
      return at(now, number);
  }
}

/// Leaves an actor blocked until what `key` says has happened; then its request is served again.
void Clock::block(int number, Key key) {
  Actor& actor = actors_[index(number)];
  actor.blocked = true;
  blocked_[index(key)].push_back({number, actor.version});
}

void Clock::wake(double now, Key key) { wake_all(now, blocked_[index(key)]); }

void Clock::wake_all(double now, std::vector<std::pair<int, int>>& blocked) {
  for (const auto& [actor, version] : blocked)
    if (version == actors_[index(actor)].version) at(now, actor);  // else it has gone on meanwhile
  blocked.clear();
}

/// Goes on at `end`; the time until then is put down as the intervals say.
void Clock::spend(double now, int number, const std::array<Interval, 2>& intervals, double end) {
  const Actor& actor = actors_[index(number)];
  if (end > actor.since) change_beside(now, number, Beside::idle);
  auto& log = state_of(number).log.lanes[static_cast<std::size_t>(actor.lane)];
  for (const Interval& interval : intervals)
    if (interval.end > interval.begin) log.push_back(interval);
  at(std::max(now, end), number);
}

// ---- work and sweeps ----

void Clock::work(double now, int number) {
  const Actor& actor = actors_[index(number)];
  auto& log = state_of(number).log.lanes[static_cast<std::size_t>(actor.lane)];
  for (const auto& [term, seconds] : actor.request->parts) {
    log.push_back({now, now + seconds, term});
    now += seconds;
  }
  at(now, number);
}

void Clock::begin_sweep(double now, int number) {
  State& state = state_of(number);
  state.sweeping = {number, actors_[index(number)].request->action->sweep, 1.0, now};
  at(now + state.sweeping.seconds[static_cast<std::size_t>(state.beside)], number);
}

void Clock::end_sweep(double now, int number) {
  State& state = state_of(number);
  const Actor& actor = actors_[index(number)];
  state.sweeping.actor = -1;
  if (now > actor.since)
    state.log.lanes[static_cast<std::size_t>(actor.lane)].push_back({actor.since, now, Term::compute});
}

/// The communication thread, or the other stream, changes its work: a sweep beside it changes pace.
void Clock::change_beside(double now, int number, Beside to) {
  State& state = state_of(number);
  const int comm = state.actors[static_cast<std::size_t>(Lane::comm)];
  const int beside = comm >= 0 ? comm : state.actors[static_cast<std::size_t>(Lane::halo_stream)];
  if (number != beside || state.beside == to) return;
  if (Sweeping& sweep = state.sweeping; sweep.actor >= 0) {
    const double pace = sweep.seconds[static_cast<std::size_t>(state.beside)];
    sweep.left = pace > 0 ? std::max(0.0, sweep.left - (now - sweep.since) / pace) : 0.0;
    sweep.since = now;
    ++actors_[index(sweep.actor)].version;
    at(now + sweep.left * sweep.seconds[static_cast<std::size_t>(to)], sweep.actor);
  }
  state.beside = to;
}

// ---- messages ----

void Clock::send(double now, int number) {
  State& state = state_of(number);
  for (const int m : actors_[index(number)].request->action->messages) {
    sender(state, m).departures.push_back(now);
    wake(now, sent_key(state.first_message + m));
  }
  at(now, number);
}

/// Until the messages of an operation have arrived from every source.
void Clock::wait(double now, int number) {
  State& state = state_of(number);
  const Actor& actor = actors_[index(number)];
  const std::vector<int>& messages = actor.request->action->messages;
  for (const int m : messages)
    for (const Route& route : receiver(state, m).routes)
      if (static_cast<int>(senders_[index(route.sender)].departures.size()) <= receiver(state, m).taken) {
        change_beside(now, number, Beside::idle);
        return block(number, sent_key(route.sender));
      }
  double last = actor.since, late = actor.since, longest = 0;
  for (const int m : messages) {
    Receiver& in = receiver(state, m);
    for (const Route& route : in.routes) {
      Sender& from = senders_[index(route.sender)];
      const double came = arrival(state, in, route, actor.since);
      longest = std::max(longest, route.flight.seconds);
      if (came > last) {
        last = came;
        late = std::max(actor.since, std::min(from.departures[index(in.taken)], came));
      }
      if (route.flight.by_itself) continue;
      from.delivered[index(route.place)].push_back(came);
      wake(std::max(now, came), delivered_key(route.sender));
    }
    ++in.taken;
  }
  state.log.flights.push_back({std::max(now, last), longest});
  spend(now, number, {{{actor.since, late, Term::wait}, {late, last, Term::message}}}, last);
}

/// Until messages that advance only inside calls have been fetched; others were copied away when sent.
void Clock::complete(double now, int number) {
  State& state = state_of(number);
  const Actor& actor = actors_[index(number)];
  const std::vector<int>& messages = actor.request->action->messages;
  const auto by_itself = [&](int m) { return state.track->flights[index(m)].by_itself; };
  double end = actor.since;
  for (const int m : messages) {
    if (by_itself(m)) continue;
    const Sender& own = sender(state, m);
    for (const auto& times : own.delivered) {
      if (static_cast<int>(times.size()) <= own.completed) {
        change_beside(now, number, Beside::idle);
        return block(number, delivered_key(state.first_message + m));
      }
      end = std::max(end, times[index(own.completed)]);
    }
  }
  for (const int m : messages)
    if (!by_itself(m)) ++sender(state, m).completed;
  spend(now, number, {{{actor.since, end, Term::message}, {}}}, end);
}

/// When a sent message arrives, if its receiver only waits from `waits_from` on.
double Clock::arrival(const State& state, const Receiver& in, const Route& route, double waits_from) const {
  const Flight& flight = route.flight;
  double start = senders_[index(route.sender)].departures[index(in.taken)];
  if (!flight.by_itself) start = std::max(start, in.seen_number == in.taken ? in.seen_at : waits_from);
  if (start >= waits_from) return start + flight.seconds;
  return waits_from + std::max(flight.held, flight.seconds - state.track->efficiency * (waits_from - start));
}

/// When a call first saw the next message that advances only inside calls.
double Clock::see(Receiver& in, double now) {
  if (in.seen_number != in.taken) {
    in.seen_number = in.taken;
    in.seen_at = now;
  }
  return in.seen_at;
}

/// Whether an operation can run without waiting; messages that need calls get one.
void Clock::test(double now, int number) {
  const State& state = state_of(number);
  const Action& action = *actors_[index(number)].request->action;
  if (action.deed == Deed::complete) return at(now, number, is_fetched(state, action, now));
  bool here = true;
  for (const int m : action.messages) here = is_here(state, m, now) && here;  // tests every one: that is the call
  at(now, number, here);
}

/// Whether a message has arrived but for its held part; the test is a call in which it may start to advance.
bool Clock::is_here(const State& state, int message, double now) {
  Receiver& in = receiver(state, message);
  bool there = true;
  for (const Route& route : in.routes) {
    const std::vector<double>& departures = senders_[index(route.sender)].departures;
    if (static_cast<int>(departures.size()) <= in.taken || departures[index(in.taken)] > now) {
      there = false;
      continue;
    }
    const double start = route.flight.by_itself ? departures[index(in.taken)] : see(in, now);
    there = there && state.track->efficiency * (now - start) >= (route.flight.seconds - route.flight.held) * arrived;
  }
  return there;
}

/// Whether every receiver has fetched those of an operation's messages that advance only inside calls.
bool Clock::is_fetched(const State& state, const Action& action, double now) const {
  for (const int m : action.messages) {
    if (state.track->flights[index(m)].by_itself) continue;
    const Sender& own = senders_[index(state.first_message + m)];
    for (const auto& times : own.delivered)
      if (static_cast<int>(times.size()) <= own.completed || times[index(own.completed)] > now) return false;
  }
  return true;
}

// ---- all ranks together ----

void Clock::meet_barrier(double now, int number) {
  at_barrier_.push_back(number);
  if (at_barrier_.size() < states_.size()) return;
  for (const int met : at_barrier_) {
    const Actor& actor = actors_[index(met)];
    state_of(met).log.lanes[static_cast<std::size_t>(actor.lane)].push_back({actor.since, now, Term::wait});
    at(now, met);
  }
  at_barrier_.clear();
}

void Clock::give_numbers(double now, int number) {
  State& state = state_of(number);
  const int reduction = actors_[index(number)].request->action->reduction;
  state.given.resize(std::max(state.given.size(), index(reduction) + 1));
  Meeting& meeting = meetings_[{reduction, state.given[index(reduction)]++}];
  meeting.given.push_back(now);
  if (meeting.given.size() == states_.size()) wake_all(now, meeting.blocked);
  at(now, number);
}

/// Until the numbers that the track gave last have come together; at once when it has given none.
void Clock::take_numbers(double now, int number) {
  const State& state = state_of(number);
  Actor& actor = actors_[index(number)];
  const Action& action = *actor.request->action;
  const bool gave = index(action.reduction) < state.given.size() && state.given[index(action.reduction)] > 0;
  if (!gave) return at(now, number);
  Meeting& meeting = meetings_[{action.reduction, state.given[index(action.reduction)] - 1}];
  if (meeting.given.size() < states_.size()) {
    actor.blocked = true;
    meeting.blocked.push_back({number, actor.version});
    return;
  }
  const double late = std::max(actor.since, meeting.given.back());
  const double end = std::max(actor.since, meeting.given.back() + action.collective_s);
  spend(now, number, {{{actor.since, late, Term::wait}, {late, end, Term::reduction}}}, end);
}

// ---- lanes of one track ----

/// Until some actions of the track's other lanes are done in this round.
void Clock::wait_for_lanes(double now, int number) {
  const State& state = state_of(number);
  const Request& request = *actors_[index(number)].request;
  for (const int key : request.keys)
    if (state.finished[index(key)] <= request.round) {
      change_beside(now, number, Beside::idle);
      return block(number, done_key(state, key));
    }
  at(now, number);
}

void Clock::finish(double now, int number) {
  State& state = state_of(number);
  const int key = actors_[index(number)].request->key;
  ++state.finished[index(key)];
  state.done_at[index(key)] = now;
  wake(now, done_key(state, key));
  at(now, number);
}

/// Until the other lane is here too; meanwhile a communication thread helps.
void Clock::join(double now, int number) {
  change_beside(now, number, Beside::helping);
  State& state = state_of(number);
  state.joined.push_back(number);
  if (state.joined.size() < 2) return;
  for (const int one : state.joined) at(now, one);
  state.joined.clear();
}

// ---- the host beside a device ----

/// The first of some operations that can proceed; else the host tries again when it knows that one may.
void Clock::choose(double now, int number) {
  Actor& actor = actors_[index(number)];
  const State& state = state_of(number);
  const Request& request = *actor.request;
  double soonest = infinity;
  ++actor.version;
  for (const int i : request.options) {
    if (i < 0) continue;
    const bool several = request.options[1] >= 0;
    const Ready ready = readiness(now, state, request.round, state.track->body[index(i)], several);
    if (ready.missing.empty() && ready.when <= now) {
      ++actor.version;
      actor.blocked = false;
      return at(now, number, i);
    }
    for (const Key key : ready.missing) block(number, key);
    if (ready.missing.empty()) soonest = std::min(soonest, ready.when);
  }
  actor.blocked = true;
  if (soonest < infinity) at(soonest, number);
}

/// Events that the host awaits before it begins an operation, and the time from which it can, as far as known.
/// ask: messages must have arrived too; else the operation itself waits for them.
Clock::Ready Clock::readiness(double now, const State& state, int round, const Action& action, bool ask) {
  const Track& track = *state.track;
  Ready ready;
  for (const int before : action.after)
    if (track.body[index(before)].on_stream()) {
      if (state.finished[index(before)] <= round) ready.missing.push_back(done_key(state, before));
      ready.when = std::max(ready.when, state.done_at[index(before)] + track.notice_s);
    }
  if (!ready.missing.empty()) ready.when = 0;
  if (ask && action.deed == Deed::wait)
    for (const int m : action.messages) {
      Receiver& in = receiver(state, m);
      for (const Route& route : in.routes) {
        const std::vector<double>& departures = senders_[index(route.sender)].departures;
        if (static_cast<int>(departures.size()) <= in.taken) {
          ready.missing.push_back(sent_key(route.sender));
          continue;
        }
        const double start = route.flight.by_itself ? departures[index(in.taken)] : see(in, now);
        ready.when = std::max(ready.when, start + (route.flight.seconds - route.flight.held) / track.efficiency);
      }
    }
  if (ask && action.deed == Deed::complete && !is_fetched(state, action, now))
    for (const int m : action.messages)
      if (!track.flights[index(m)].by_itself) ready.missing.push_back(delivered_key(state.first_message + m));
  return ready;
}

}  // namespace haloscope::model
