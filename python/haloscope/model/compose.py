"""The time of repeated programs: priced operations, carried out on a clock by the runner's rules.

A track is one class of ranks with equal programs: its actions in order, how long its messages travel, and which tracks its
own messages come from. Tracks start each round when they have finished the one before, so delays spread as they do between
ranks; after a few rounds all advance at the pace of the slowest, and that pace is the time. Nothing here knows a schedule:
what overlaps follows from lanes, dependencies and waits alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from haloscope.model.clock import Clock, Intervals, Log, Stuck
from haloscope.model.tracks import HALO_STREAM, SWEEP_STREAM, Action, Flight, Track

__all__ = ["TERMS", "Action", "Flight", "Pace", "Stuck", "Track", "compose"]

TERMS = ("compute", "pack", "d2h", "message", "h2d", "unpack", "copy", "synchronisation", "launch", "wait", "runner",
         "reduction")  # fmt: skip
PRECEDENCE = (SWEEP_STREAM, HALO_STREAM, "main", "comm")  # lanes: one counts only while those before it are idle
FEW_ROUNDS, MANY_ROUNDS = 6, 24  # rounds carried out; the first half lets tracks fall into step
IN_STEP = 1e-6  # relative difference between rounds that counts as none


@dataclass(frozen=True)
class Pace:
    """Seconds per round of one track in step with the others, by term along its critical path, and how long it is busy.

    terms add up to seconds. busy: the same terms over both lanes, hidden or not; message: the longest flights received.
    """

    seconds: float
    terms: Mapping[str, float]
    busy: Mapping[str, float]

    @property
    def working(self) -> float:
        """Seconds per round not spent waiting for a late peer."""
        return self.seconds - self.terms["wait"]


def compose(tracks: Sequence[Track]) -> list[Pace]:
    """Return the pace of every track.

    Raises Stuck when tracks deadlock. Cost O(tracks x actions x rounds).
    """
    for rounds in (FEW_ROUNDS, MANY_ROUNDS):
        clock = Clock(tracks, rounds)
        clock.run()
        if _settled(clock.logs, rounds):
            break
    return [_pace(log, rounds // 2) for log in clock.logs]


def _settled(logs: Sequence[Log], rounds: int) -> bool:
    """Whether all rounds of the second half take as long as each other."""
    longest = [max(log.ends[r + 1] - log.ends[r] for log in logs) for r in range(rounds // 2 - 1, rounds - 1)]
    slowest = [min(log.ends[r + 1] - log.ends[r] for log in logs) for r in range(rounds // 2 - 1, rounds - 1)]
    return max(longest) - min(slowest) <= IN_STEP * max(longest)


def _pace(log: Log, first: int) -> Pace:
    """Averages over the rounds from number `first` on."""
    begin, end, rounds = log.ends[first - 1], log.ends[-1], len(log.ends) - first
    terms, busy = dict.fromkeys(TERMS, 0.0), dict.fromkeys(TERMS, 0.0)
    lanes = [_within(log.lanes[name], begin, end) for name in PRECEDENCE if name in log.lanes]
    for low, high, term in itertools.chain(*lanes):
        busy[term] += (high - low) / rounds
    busy["message"] = sum(length for at, length in log.flights if begin < at <= end) / rounds
    for low, high, term in _critical(lanes, begin, end):
        terms[term] += (high - low) / rounds
    return Pace(sum(terms.values()), terms, busy)


def _within(intervals: Intervals, begin: float, end: float) -> Intervals:
    return [(max(low, begin), min(high, end), term) for low, high, term in intervals if high > begin and low < end]


def _critical(lanes: Sequence[Intervals], begin: float, end: float) -> Iterable[tuple[float, float, str]]:
    """Yield the intervals of the first lane and, in its gaps, those of the next; "wait" elsewhere."""
    if not lanes:
        if end > begin:
            yield begin, end, "wait"
        return
    at = begin
    for low, high, term in [*lanes[0], (end, end, "")]:
        if low > at:
            yield from _critical([_within(lane, at, low) for lane in lanes[1:]], at, low)
        if high > low:
            yield low, high, term
        at = max(at, high)
