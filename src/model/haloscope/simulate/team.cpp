// Ranks with a communication thread: both lanes side by side, as in Runner::run_comm_thread. The work of that thread
// determines the speed of sweeps. Here every operation ends with an event, since the lanes wait for each other.
#include <algorithm>

#include "haloscope/simulate/engine.hpp"

namespace haloscope::simulate {

void Engine::start_team(int r) {
  Team& team = team_[r];
  team.done = team.comm_done = team.blocked = team.sweeping = team.reducing = false;
  team.beside = CommState::busy;
  begin_main(r, ranks_[r].clock);
  begin_comm(r);
}

// ---- the communication thread ---------------------------------------------------------------------------------------

void Engine::begin_comm(int r) {
  Rank& rank = ranks_[r];
  rank.phase = Phase::begin;
  if (rank.comm == static_cast<int>(lanes(rank).comm.size())) {
    team_[r].comm_done = true;
    beside(r, rank.clock, CommState::helping);
    if (team_[r].blocked) begin_main(r, rank.clock);
    return join(r, rank.clock);
  }
  const PricedOp& s = comm_op(rank);
  if (s.needs > rank.main) {
    rank.blocked = Blocked::main_lane;
    return beside(r, rank.clock, CommState::idle);
  }
  if (interacts(s) && !pays_first(s)) {
    beside(r, rank.clock, CommState::idle);
    if (!perform(r, s)) return;
    rank.phase = Phase::spend;
    return push(rank.clock, r);
  }
  beside(r, rank.clock, CommState::busy);
  rank.phase = Phase::finish;
  work(r, s);
  push(rank.clock, r);
}

void Engine::on_comm_event(int r) {
  Rank& rank = ranks_[r];
  if (rank.phase == Phase::begin) return begin_comm(r);
  const PricedOp& s = comm_op(rank);
  if (rank.phase == Phase::spend) {
    beside(r, rank.clock, CommState::busy);
    rank.phase = Phase::finish;
    const double begin = rank.clock;
    work(r, s);
    if (rank.clock > begin) return push(rank.clock, r);
  } else if (interacts(s) && pays_first(s)) {
    perform(r, s);
  }
  finish_comm(r);
}

void Engine::finish_comm(int r) {
  Rank& rank = ranks_[r];
  ++rank.comm;
  if (team_[r].blocked) begin_main(r, rank.clock);
  begin_comm(r);
}

// ---- the others -----------------------------------------------------------------------------------------------------

void Engine::begin_main(int r, double now) {
  Rank& rank = ranks_[r];
  Team& team = team_[r];
  const Lanes& both = lanes(rank);
  team.blocked = false;
  while (rank.main < static_cast<int>(both.main.size())) {
    const PricedOp& s = both.main[rank.main];
    // The thread that communicates is the one that reduces.
    if (s.needs > rank.comm || (reduces(s) && !team.comm_done)) {
      team.blocked = true;
      return;
    }
    if (reduces(s)) {
      team.reducing = true;
      const double end = now + spend(r, s);
      note(r, Lane::main, now, end, s, Activity::working);
      return push(end, r, 1, ++team.version);
    }
    if (s.kind == OpKind::sweep) {
      ++result_.operations;
      team.sweeping = true;
      team.begun = now;
      team.sweep.begin(now, delay(r, s.cost.seconds), s.cost.seconds);
      return push(team.sweep.end(pace(r)), r, 1, ++team.version);
    }
    ++rank.main;  // the communication thread needs no call to make progress
  }
  team.done = true;
}

double Engine::pace(int r) const {
  const Rank& rank = ranks_[r];
  const OpSeconds& cost = lanes(rank).main[rank.main].cost;
  const CommState state = team_[r].beside;
  return state == CommState::busy ? cost.busy : state == CommState::idle ? cost.idle : cost.seconds;
}

void Engine::on_main_event(int r, double now) {
  Rank& rank = ranks_[r];
  Team& team = team_[r];
  if (team.reducing) {
    rank.clock = now;
    if (!perform_main(r, main_op(rank))) return;
    team.reducing = false;
    now = rank.clock;
  } else {
    team.sweeping = false;
    count(r, OpKind::sweep, now - team.begun);
    note(r, Lane::main, team.begun, now, main_op(rank), Activity::working);
  }
  ++rank.main;
  begin_main(r, now);
  if (rank.blocked == Blocked::main_lane && comm_op(rank).needs <= rank.main) {
    rank.blocked = Blocked::no;
    rank.clock = now;
    begin_comm(r);
  } else if (team.done) {
    join(r, now);
  }
}

/// Changes the activity of the communication thread from `now` on: the speed of a concurrent sweep changes.
void Engine::beside(int r, double now, CommState state) {
  Team& team = team_[r];
  if (team.beside == state) return;
  if (team.sweeping) team.sweep.go_on(now, pace(r));
  team.beside = state;
  if (team.sweeping) push(team.sweep.end(pace(r)), r, 1, ++team.version);
}

/// Moves the whole team to the next program, once both lanes have finished.
void Engine::join(int r, double now) {
  if (!team_[r].done || !team_[r].comm_done) return;
  ranks_[r].clock = now;
  if (next_program(r)) start(r);
}

}  // namespace haloscope::simulate
