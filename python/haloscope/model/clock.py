"""The clock that carries out tracks: events in order of time, so that at any moment all earlier sends are known."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from haloscope.errors import HaloscopeError
from haloscope.model.tracks import HALO_STREAM, Action, Flight, Lane, Track, lanes

Done = int | tuple[str, int]  # an action of the body; handing it over, or the comm lane's part of a program
Intervals = list[tuple[float, float, str]]  # begin, end, term


class Stuck(HaloscopeError):
    """Every track waits for a message: the tracks describe ranks that take turns and cannot represent one another."""


class Log:
    """When a track did what: intervals by term of each lane, lengths of received flights, ends of rounds."""

    def __init__(self) -> None:
        self.lanes: dict[str, Intervals] = defaultdict(list)
        self.flights: list[tuple[float, float]] = []  # when received, how long it travelled
        self.ends: list[float] = []


class _Actor:
    """One lane of one track (both lanes, without a communication thread)."""

    def __init__(self, track: int, steps: Lane, log: Intervals):
        self.track, self.steps, self.log = track, steps, log
        self.request: tuple[str, Any] | None = None  # what it is blocked on
        self.since = 0.0
        self.version = 0  # of its next event; earlier ones are void


class Clock:
    """Events in order of time: the actor with the earliest clock goes on."""

    def __init__(self, tracks: Sequence[Track], rounds: int):
        self.tracks = tracks
        self.logs = [Log() for _ in tracks]
        self.events: list[tuple[float, int, _Actor, int, object]] = []
        self.count = itertools.count()
        self.sent: dict[tuple[int, int], list[float]] = defaultdict(list)  # (track, out id) -> departures
        self.taken: dict[tuple[int, int], int] = defaultdict(int)  # (track, in id) -> messages received
        self.completed: dict[tuple[int, int], int] = defaultdict(int)  # (track, out id) -> sends completed
        self.started: dict[tuple[int, int, int], float] = {}  # (track, in id, number) -> first call that saw it
        # source -> receiver -> times
        self.delivered: dict[tuple[int, int], dict[tuple[int, int], list[float]]] = defaultdict(dict)
        self.receivers: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
        # Per track and incoming message: of every source its departures so far, its flight, and the source itself.
        self.routes = [
            {
                m: [(self.sent[s], tracks[s[0]].flights[s[1]], s) for s in sources]
                for m, sources in track.sources.items()
            }
            for track in tracks
        ]
        self.blocked: dict[tuple, list[tuple[_Actor, int]]] = defaultdict(list)  # with the version that is
        # Of tracks with several lanes: rounds in which an action, or handing one over, is done, and when it was last.
        self.finished: list[dict[Done, int]] = [defaultdict(int) for _ in tracks]
        self.done_at: list[dict[Done, float]] = [{} for _ in tracks]
        self.joined: list[list[_Actor]] = [[] for _ in tracks]
        self.waiting: list[_Actor] = []  # at a barrier
        self.given: dict[tuple[int, int], int] = defaultdict(int)  # (track, reduction) -> how often it gave its numbers
        self.meetings: dict[tuple[int, int], list[float]] = defaultdict(list)  # (reduction, number) -> when tracks did
        self.lanes: list[dict[str, _Actor]] = [{} for _ in tracks]
        self.state = ["busy"] * len(tracks)  # of the lane beside sweeps: busy, idle, helping
        self.sweeping: list[list[Any] | None] = [None] * len(tracks)  # [actor, seconds by state, part left, since]
        for number, track in enumerate(tracks):
            for m, sources in track.sources.items():
                for source in sources:
                    self.receivers[source].add((number, m))
            log = self.logs[number]
            for name, steps in lanes(track, rounds).items():
                self.lanes[number][name] = _Actor(number, steps, log.lanes[name])
                self.at(0.0, self.lanes[number][name])

    def at(self, time: float, actor: _Actor, answer: object = None) -> None:
        """Let an actor go on at a time, with the answer to what it asked."""
        heapq.heappush(self.events, (time, next(self.count), actor, actor.version, answer))

    def run(self) -> None:
        """Carry out everything. Raises Stuck on a deadlock."""
        events = self.events
        while events:
            now, _, actor, version, answer = heapq.heappop(events)
            if version != actor.version:
                continue
            if actor.request is not None:  # woken: look again
                self.serve(now, actor, *actor.request)
                continue
            if (sweep := self.sweeping[actor.track]) is not None and sweep[0] is actor:
                self.end_sweep(now, actor)
            self.thread_state(now, actor, "busy")
            try:
                kind, what = actor.steps.send(answer)
            except StopIteration:
                continue
            actor.since = now
            self.serve(now, actor, kind, what)
        if any(actor.request is not None for both in self.lanes for actor in both.values()):
            raise Stuck("the ranks wait for each other forever; this is a fault in the program, please report it")

    def serve(self, now: float, actor: _Actor, kind: str, what: object) -> None:
        """Answer a request now, or leave the actor blocked on what it needs."""
        actor.request = None
        getattr(self, f"on_{kind}")(now, actor, what)

    def block(self, actor: _Actor, request: tuple[str, object], key: tuple) -> None:
        """Leave an actor blocked until what `key` says has happened; then its request is served again."""
        actor.request = request
        self.blocked[key].append((actor, actor.version))

    def wake(self, now: float, key: tuple) -> None:
        """Let all go on that are blocked on `key`."""
        for actor, version in self.blocked.pop(key, ()):
            if version == actor.version:  # else it has gone on meanwhile
                self.at(now, actor)

    # -- requests

    def on_work(self, now: float, actor: _Actor, parts: Iterable[tuple[str, float]]) -> None:
        """Be busy for (term, seconds), one after another."""
        for term, seconds in parts:
            if seconds > 0:
                actor.log.append((now, now + seconds, term))
                now += seconds
        self.at(now, actor)

    def on_send(self, now: float, actor: _Actor, action: Action) -> None:
        """Let messages leave."""
        for m in action.messages:
            self.sent[actor.track, m].append(now)
            self.wake(now, ("sent", actor.track, m))
        self.at(now, actor)

    def on_wait(self, now: float, actor: _Actor, action: Action) -> None:
        """Until the messages of an operation have arrived from every source."""
        track, routes, taken = actor.track, self.routes[actor.track], self.taken
        for m in action.messages:
            number = taken[track, m]
            for departures, _, source in routes[m]:
                if len(departures) <= number:
                    self.thread_state(now, actor, "idle")
                    self.block(actor, ("wait", action), ("sent", *source))
                    return
        arrival = late = actor.since
        longest = 0.0
        for m in action.messages:
            number = taken[track, m]
            for departures, flight, source in routes[m]:
                came = self.arrival(track, m, number, departures[number], flight, actor.since)
                longest = max(longest, flight.seconds)
                if came > arrival:
                    arrival, late = came, max(actor.since, min(departures[number], came))
                if not flight.by_itself:
                    self.delivered[source].setdefault((track, m), []).append(came)
                    self.wake(max(now, came), ("delivered", *source))
            taken[track, m] += 1
        self.logs[track].flights.append((max(now, arrival), longest))
        self.spend(now, actor, [(actor.since, late, "wait"), (late, arrival, "message")], arrival)

    def on_complete(self, now: float, actor: _Actor, action: Action) -> None:
        """Until messages that advance only inside calls have been fetched; others were copied away when sent."""
        track, end = actor.track, actor.since
        needed = [m for m in action.messages if not self.tracks[track].flights[m].by_itself]
        for m in needed:
            number = self.completed[track, m]
            for receiver in self.receivers[track, m]:
                times = self.delivered[track, m].get(receiver, ())
                if len(times) <= number:
                    self.thread_state(now, actor, "idle")
                    self.block(actor, ("complete", action), ("delivered", track, m))
                    return
                end = max(end, times[number])
        for m in needed:
            self.completed[track, m] += 1
        self.spend(now, actor, [(actor.since, end, "message")], end)

    def spend(self, now: float, actor: _Actor, intervals: Intervals, end: float) -> None:
        """Go on at `end`; the time until then is put down as the intervals say."""
        if end > actor.since:
            self.thread_state(now, actor, "idle")
        actor.log += [interval for interval in intervals if interval[1] > interval[0]]
        self.at(max(now, end), actor)

    def on_test(self, now: float, actor: _Actor, action: Action) -> None:
        """Whether an operation can run without waiting; messages that need calls get one."""
        if action.kind == "complete":
            self.at(now, actor, self.fetched(now, actor.track, action.messages))
            return
        here = [self.here(actor.track, m, now) for m in action.messages]  # tests every one: that is the call
        self.at(now, actor, all(here))

    def on_barrier(self, now: float, actor: _Actor, action: Action) -> None:
        """Until every track is here."""
        self.waiting.append(actor)
        if len(self.waiting) < len(self.tracks):
            return
        for met in self.waiting:
            met.log.append((met.since, now, "wait"))
            self.at(now, met)
        self.waiting = []

    def on_reduce(self, now: float, actor: _Actor, action: Action) -> None:
        """Give numbers to a reduction."""
        number = self.given[actor.track, action.reduction]
        self.given[actor.track, action.reduction] += 1
        meeting = self.meetings[action.reduction, number]
        meeting.append(now)
        if len(meeting) == len(self.tracks):
            self.wake(now, ("reduced", action.reduction, number))
        self.at(now, actor)

    def on_reduced(self, now: float, actor: _Actor, action: Action) -> None:
        """Until the numbers that the track gave last have come together; at once when it has given none."""
        number = self.given[actor.track, action.reduction] - 1
        if number < 0:
            self.at(now, actor)
            return
        meeting = self.meetings[action.reduction, number]
        if len(meeting) < len(self.tracks):
            self.block(actor, ("reduced", action), ("reduced", action.reduction, number))
            return
        late = max(actor.since, meeting[-1])
        end = max(actor.since, meeting[-1] + action.collective_s)
        self.spend(now, actor, [(actor.since, late, "wait"), (late, end, "reduction")], end)

    def on_round(self, now: float, actor: _Actor, _: None) -> None:
        """Put down that a round has ended."""
        self.logs[actor.track].ends.append(now)
        self.at(now, actor)

    def on_after(self, now: float, actor: _Actor, request: tuple[int, Iterable[Done]]) -> None:
        """Until some actions of the track's other lanes are done in this round."""
        number, needed = request
        missing = [i for i in needed if self.finished[actor.track][i] <= number]
        if missing:
            self.thread_state(now, actor, "idle")
            self.block(actor, ("after", request), ("done", actor.track, missing[0]))
            return
        self.at(now, actor)

    def on_done(self, now: float, actor: _Actor, i: Done) -> None:
        """Tell the other lanes that an action is done."""
        self.finished[actor.track][i] += 1
        self.done_at[actor.track][i] = now
        self.wake(now, ("done", actor.track, i))
        self.at(now, actor)

    def on_join(self, now: float, actor: _Actor, _: None) -> None:
        """Until the other lane is here too; meanwhile a communication thread helps."""
        self.thread_state(now, actor, "helping")
        self.joined[actor.track].append(actor)
        if len(self.joined[actor.track]) == 2:
            for one in self.joined[actor.track]:
                self.at(now, one)
            self.joined[actor.track] = []

    # -- the host beside a device

    def on_copying(self, now: float, actor: _Actor, parts: Iterable[tuple[str, float]]) -> None:
        """Be busy with copies of a device, which leave its kernels alone."""
        self.thread_state(now, actor, "idle")
        self.on_work(now, actor, parts)

    def on_choose(self, now: float, actor: _Actor, request: tuple[int, Sequence[tuple[int, Action]]]) -> None:
        """The first of some operations that can proceed; else the host tries again when it knows that one may."""
        number, options = request
        soonest, actor.version = math.inf, actor.version + 1
        for i, action in options:
            missing, when = self.ready(now, actor.track, number, action, len(options) > 1)
            if not missing and when <= now:
                actor.request, actor.version = None, actor.version + 1
                self.at(now, actor, i)
                return
            for key in missing:
                self.block(actor, ("choose", request), key)
            soonest = min(soonest, math.inf if missing else when)
        actor.request = ("choose", request)
        if soonest < math.inf:
            self.at(soonest, actor)

    def ready(self, now: float, track: int, number: int, action: Action, ask: bool) -> tuple[list[tuple], float]:
        """Events that the host awaits before it begins an operation, and the time from which it can, as far as known.

        ask: messages must have arrived too; else the operation itself waits for them.
        """
        one, when = self.tracks[track], 0.0
        streams = [b for b in action.after if one.body[b].stream]
        missing: list[tuple] = [("done", track, b) for b in streams if self.finished[track][b] <= number]
        if not missing:
            when = max((self.done_at[track][b] + one.notice_s for b in streams), default=0.0)
        if ask and action.kind == "wait":
            for m in action.messages:
                taken = self.taken[track, m]
                for departures, flight, source in self.routes[track][m]:
                    if len(departures) <= taken:
                        missing.append(("sent", *source))
                        continue
                    start = departures[taken] if flight.by_itself else self.started.setdefault((track, m, taken), now)
                    when = max(when, start + (flight.seconds - flight.held) / one.efficiency)
        if ask and action.kind == "complete" and not self.fetched(now, track, action.messages):
            missing += [("delivered", track, m) for m in action.messages if not one.flights[m].by_itself]
        return missing, when

    # -- sweeps beside a communication thread, or beside the other stream of a device

    def on_sweep(self, now: float, actor: _Actor, seconds: Sequence[float]) -> None:
        """Sweep, at a pace by what the lane beside does; seconds: for each of its states."""
        by_state = dict(zip(("busy", "idle", "helping"), seconds, strict=True))
        self.sweeping[actor.track] = [actor, by_state, 1.0, now]
        self.at(now + by_state[self.state[actor.track]], actor)

    def end_sweep(self, now: float, actor: _Actor) -> None:
        """Put a sweep down that is through."""
        self.sweeping[actor.track] = None
        if now > actor.since:
            actor.log.append((actor.since, now, "compute"))

    def thread_state(self, now: float, actor: _Actor, state: str) -> None:
        """The communication thread, or the other stream, changes its work: a sweep beside it changes pace."""
        track = actor.track
        beside = self.lanes[track].get("comm") or self.lanes[track].get(HALO_STREAM)
        if actor is not beside or self.state[track] == state:
            return
        if (sweep := self.sweeping[track]) is not None:
            sweeper, by_state, left, since = sweep
            pace = by_state[self.state[track]]
            left = max(0.0, left - (now - since) / pace) if pace > 0 else 0.0
            sweep[2:] = [left, now]
            sweeper.version += 1
            self.at(now + left * by_state[state], sweeper)
        self.state[track] = state

    # -- messages

    def arrival(self, track: int, m: int, number: int, departed: float, flight: Flight, waits_from: float) -> float:
        """When a sent message arrives, if its receiver only waits from `waits_from` on."""
        start = departed if flight.by_itself else max(departed, self.started.get((track, m, number), waits_from))
        if start >= waits_from:
            return start + flight.seconds
        return waits_from + max(flight.held, flight.seconds - self.tracks[track].efficiency * (waits_from - start))

    def here(self, track: int, m: int, now: float) -> bool:
        """Whether a message has arrived but for its held part; the test is a call in which it may start to advance."""
        number, there = self.taken[track, m], True
        for departures, flight, _ in self.routes[track][m]:
            if len(departures) <= number or departures[number] > now:
                there = False
                continue
            start = departures[number] if flight.by_itself else self.started.setdefault((track, m, number), now)
            left = (flight.seconds - flight.held) * (1 - 1e-12)
            there = there and self.tracks[track].efficiency * (now - start) >= left
        return there

    def fetched(self, now: float, track: int, messages: Iterable[int]) -> bool:
        """Whether every receiver has fetched those of these messages that advance only inside calls."""
        for m in messages:
            if self.tracks[track].flights[m].by_itself:
                continue
            for receiver in self.receivers[track, m]:
                times, number = self.delivered[track, m].get(receiver, ()), self.completed[track, m]
                if len(times) <= number or times[number] > now:
                    return False
        return True
