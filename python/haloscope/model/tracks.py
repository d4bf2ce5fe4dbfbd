"""Tracks: the priced programs of classes of ranks, and how their lanes are walked, as the runner walks them.

Rules (those of runner.cpp):
- one control thread drives both lanes; operations of the comm lane run where an operation of the main lane needs them, in
  order, and at `progress` as far as they need no waiting; or, with a communication thread, both lanes run side by side and
  that thread helps to sweep once its lane is done;
- a message leaves when its `send` is through and travels `seconds`; the receiver has it then, or later where the
  message advances only inside calls (`by_itself` false), slower while the receiver computes (`efficiency` < 1), or not to its
  end (`held` > 0);
- with a device the control thread hands operations to its two streams as soon as the host's part before them is done, and
  otherwise advances its own lanes; the streams work in order beside it and meet at the end of a program.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

STREAMS = SWEEP_STREAM, HALO_STREAM = "sweep_stream", "halo_stream"  # of a device, as programs name these lanes

Lane = Generator[tuple[str, object], Any, None]  # yields requests to the clock, is sent its answers


@dataclass(frozen=True)
class Action:
    """One priced operation.

    kind: work, sweep, send, wait, complete, progress, barrier, reduce, reduced. comm: on the comm lane. after: actions
    that must have finished. parts: (term, seconds) that it keeps its thread busy. messages: ids that it sends, waits
    for or completes. sweep: seconds while the communication thread is busy, while it waits, and once it helps; without
    one only the last. stream: of a device, one of STREAMS, then `sweep` is by what the other stream does; "" = of the
    host. copying: it keeps the device's copy engine busy, not its kernels. hand_s: seconds in which the host hands it
    over. reduction: number of the one that `reduce` gives numbers to and `reduced` waits for; collective_s: seconds
    from the last rank's numbers until every rank has the result; waits: `reduce` waits for it itself.
    """

    kind: str
    comm: bool
    after: tuple[int, ...] = ()
    parts: tuple[tuple[str, float], ...] = ()
    messages: tuple[int, ...] = ()
    sweep: tuple[float, float, float] = (0.0, 0.0, 0.0)
    stream: str = ""
    copying: bool = False
    hand_s: float = 0.0
    reduction: int = -1
    collective_s: float = 0.0
    waits: bool = True


@dataclass(frozen=True)
class Flight:
    """How long an outgoing message travels, whether it does so without calls into the message library, and how many of the
    seconds its receiver must spend in a call whatever it did before: copying it, where the cores are the network."""

    seconds: float
    by_itself: bool = True
    held: float = 0.0


@dataclass(frozen=True)
class Track:
    """A class of ranks: `opening` is carried out once, `body` in every round.

    ends: where each program of the body ends, () = it is one; a program begins when both lanes of the one before are done.
    flights: by id of an outgoing message. sources: by id of an incoming one, the (track number, outgoing id) it may come
    from; the last to arrive counts. efficiency: part of a travelling message's progress while the receiver computes.
    notice_s: delay after which the host knows that an operation of its device is done.
    """

    body: tuple[Action, ...]
    flights: Mapping[int, Flight] = field(default_factory=dict)
    sources: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    opening: tuple[Action, ...] = ()
    comm_thread: bool = False
    efficiency: float = 1.0
    notice_s: float = 0.0
    ends: tuple[int, ...] = ()

    def programs(self) -> list[range]:
        """Return the places of each program's actions in the body."""
        ends = self.ends or (len(self.body),)
        return [range(begin, end) for begin, end in zip((0, *ends), ends, strict=False)]


def lanes(track: Track, rounds: int) -> dict[str, Lane]:
    """Return a generator per lane that yields requests to the clock: "main", "comm" of a communication thread, STREAMS.

    A request is (kind, what): work, copying, send, wait, complete, test, choose, barrier, reduce, reduced, sweep, after,
    done, join, round.
    """
    if any(action.stream for action in track.body):
        return {"main": _feeder(track, rounds), **{name: _stream(track, rounds, name) for name in STREAMS}}
    if not track.comm_thread:
        return {"main": _one_thread(track, rounds)}
    return {"main": _main_lane(track, rounds), "comm": _comm_lane(track, rounds)}


def _one_thread(track: Track, rounds: int) -> Lane:
    """Both lanes on one control thread, as Runner::run_fork_join has it."""
    if track.opening:
        yield from _fork_join(track.opening, range(len(track.opening)))
    for _ in range(rounds):
        for program in track.programs():
            yield from _fork_join(track.body, program)
        yield "round", None


def _fork_join(actions: Sequence[Action], program: range) -> Lane:
    """One program: those actions with places in `program`."""
    done: set[int] = set()
    comm = [i for i in program if actions[i].comm]
    place = 0
    for i in program:
        action = actions[i]
        if action.comm:
            continue
        for before in action.after:
            while before not in done:
                yield from _perform(actions[comm[place]])
                done.add(comm[place])
                place += 1
        if action.kind == "progress":
            yield "work", action.parts
            while place < len(comm) and done.issuperset(actions[comm[place]].after):
                following = actions[comm[place]]
                asks = following.kind in ("wait", "complete")
                if following.kind == "barrier" or (asks and not (yield "test", following)):
                    break
                yield from _perform(following)
                done.add(comm[place])
                place += 1
        elif action.reduction >= 0:
            yield from _reduce(action)
        else:
            yield "work", (("compute", action.sweep[2]),)
        done.add(i)
    for i in comm[place:]:
        yield from _perform(actions[i])


def _comm_lane(track: Track, rounds: int) -> Lane:
    for number in range(rounds):
        for program in track.programs():
            for i in program:
                action = track.body[i]
                if action.comm:
                    yield "after", (number, action.after)
                    yield from _perform(action)
                    yield "done", i
            yield "done", ("comm", program.start)
            yield "join", None


def _main_lane(track: Track, rounds: int) -> Lane:
    for number in range(rounds):
        for program in track.programs():
            for i in program:
                action = track.body[i]
                if action.comm:
                    continue
                yield "after", (number, action.after)
                if action.kind == "sweep":
                    yield "sweep", action.sweep
                elif action.reduction >= 0:  # by the thread that communicates, once it has done that
                    yield "after", (number, (("comm", program.start),))
                    yield from _reduce(action)
                yield "done", i
            yield "join", None
        yield "round", None


def _reduce(action: Action) -> Lane:
    yield "work", action.parts
    if action.kind == "reduce":
        yield "reduce", action
    if action.kind == "reduced" or action.waits:
        yield "reduced", action


def _perform(action: Action) -> Lane:
    if action.kind in ("wait", "complete", "barrier"):
        yield action.kind, action
    if action.parts:
        yield "work", action.parts
    if action.kind == "send":
        yield "send", action


def _feeder(track: Track, rounds: int) -> Lane:
    """The host's thread beside a device, as Runner::run_with_device has it."""
    actions = track.body
    for number in range(rounds):
        done: set[int] = set()  # of the streams' operations: handed over
        left = {name: [i for i, a in enumerate(actions) if _lane(a) == name] for name in (*STREAMS, "comm", "main")}
        while any(left.values()):
            given = next((left[s] for s in STREAMS if left[s] and done.issuperset(actions[left[s][0]].after)), None)
            if given:
                i = given.pop(0)
                yield "work", (("launch", actions[i].hand_s),)
                yield "done", ("given", i)
            else:
                own = [(left[name][0], actions[left[name][0]]) for name in ("comm", "main") if left[name]]
                i = yield "choose", (number, [(i, a) for i, a in own if done.issuperset(a.after)])
                if actions[i].reduction >= 0:
                    yield from _reduce(actions[i])
                else:
                    yield from _perform(actions[i])
                    yield "work", (("compute", actions[i].sweep[2]),)
                yield "done", i
                left[_lane(actions[i])].pop(0)
            done.add(i)


def _lane(action: Action) -> str:
    return action.stream or ("comm" if action.comm else "main")


def _stream(track: Track, rounds: int, name: str) -> Lane:
    """One stream: its operations in order, each once it has been handed over and those before it on the other are done."""
    for number in range(rounds):
        for i, action in enumerate(track.body):
            if action.stream != name:
                continue
            others = (b for b in action.after if track.body[b].stream not in ("", name))
            yield "after", (number, (("given", i), *others))
            if action.kind == "sweep" and name == SWEEP_STREAM:
                yield "sweep", action.sweep
            else:
                yield "copying" if action.copying else "work", (*action.parts, ("compute", action.sweep[2]))
            yield "done", i
        yield "join", None
        if name == SWEEP_STREAM:
            yield "round", None
