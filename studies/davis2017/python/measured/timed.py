"""The 2017 study's model for an app whose parts are timed: a cost law for each named timer, by runs on one node.

A timer's seconds per call follow the work of a call: cells of the block, points mirrored at edges, bytes packed or
sent. Each law is piecewise linear in that work, one for each number of processing elements on a socket: by the study's
rule of segments (section 5.4), or joined, from one measured amount to the next. The rule's segments do not meet, so
that a size between the last of one and the first of the next is extrapolated. Calls per step follow from the recorded
histogram of sub-cycles. Work of a rank alone counts by the largest over ranks, a part that includes waiting by the
least; their sum is the walltime (section 5.2).
"""

from __future__ import annotations

import functools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from haloscope import bridge, records
from haloscope.bridge.choice import Choice
from haloscope.errors import UsageError
from haloscope.model import fit, segments
from haloscope.records.rows import Row
from haloscope.report import components

THRESHOLD = 0.3  # of the study's rule: a point farther off begins a new range
Law = Sequence[segments.Segment]


@dataclass(frozen=True)
class Part:
    """A named timer of a step."""

    stage: str
    name: str
    component: str


@dataclass(frozen=True)
class Work:
    """The work of a call of a stage's timers, the most of any rank: cells, points mirrored at edges, bytes of its
    messages."""

    cells: float
    mirrored: float
    sent: float

    def of(self, part: Part) -> float:
        """Return the amount of a part's work."""
        if part.component in ("compute", "memory"):
            return self.cells
        if part.component == "update_boundary":
            return self.mirrored
        return self.sent if part.component == "point_to_point" else 0.0


@functools.lru_cache(maxsize=256)
def works(choice: Choice) -> dict[str, Work]:
    """Return the work of each stage, from the plans of all ranks."""
    layout, step = bridge.make_layout(choice), bridge.step_of(choice)
    found = {}
    for number, stage in enumerate(step.stages):
        spec = bridge.exchange_spec(choice, number)
        plans = [bridge.make_plan(layout, rank, spec) for rank in range(choice.ranks)]
        found[stage.name] = Work(
            max(layout.owned(rank).volume for rank in range(choice.ranks)),
            max(sum(c.to.volume for c in plan.copies if c.round == plan.rounds) for plan in plans),
            max(sum(m.bytes for m in plan.sent()) for plan in plans),
        )
    return found


def amount_of(choice: Choice, part: Part) -> float:
    """Return the amount of a part's work: 0 for the rest of a step, which belongs to no stage."""
    return works(choice)[part.stage].of(part) if part.stage else 0.0


def _is_of_app(choice: Choice, part: Part) -> bool:
    """Return whether a part is of a stage of the app, or of the rest of a step."""
    return not part.stage or part.stage in works(choice)


def parts_of(found: Sequence[Mapping]) -> dict[Part, tuple[float, float]]:
    """Return calls per step and seconds per call of each timer that ran in all records, medians over launches, by the
    statistic that counts. `rest` has one call per step."""
    result = {}
    timers = [_timers(record) for record in found]
    for part, timer in timers[0].items():
        calls = timer["calls"] or float(part.component == "rest")
        statistic = components.statistic_of(part.component)
        seconds = [known[part]["seconds"][statistic] for known in timers if part in known]
        if calls and len(seconds) == len(timers) and (median := statistics.median(seconds)) > 0:
            result[part] = (calls, median / calls)
    return result


def _timers(record: Mapping) -> dict[Part, Mapping]:
    """Return the timers of a record by part; none where it was not timed."""
    return {Part(t["stage"], t["name"], t["component"]): t for t in record.get("timers", ())}


@dataclass(frozen=True)
class Prediction:
    """Seconds per step: of each part, by component, in all."""

    parts: Mapping[Part, float]

    @property
    def by_component(self) -> dict[str, float]:
        """Seconds per step of each component."""
        sums: dict[str, float] = defaultdict(float)
        for part, seconds in self.parts.items():
            sums[part.component] += seconds
        return dict(sums)

    @property
    def total(self) -> float:
        """Seconds per step in all."""
        return sum(self.parts.values())


class Model:
    """Laws of all parts of one form of an app, by processing elements on a socket."""

    def __init__(self, rows: Iterable[Row], make_law: Callable[[Sequence[float], Sequence[float]], Law]):
        """Fit the laws to measured runs. rows: of one form and set-up, sizes and rank counts varied. make_law:
        `by_rule` or `joined`.

        Raises UsageError without runs that were timed.
        """
        points: dict[tuple[Part, int], list[tuple[float, float]]] = defaultdict(list)
        for row in rows:
            choice = Choice.from_json(row.request)
            for part, (_, seconds) in parts_of(row.records).items():
                if not _is_of_app(choice, part):
                    continue
                amount = amount_of(choice, part)
                points[part, choice.ranks * choice.threads].append((amount, seconds))
        if not points:
            raise UsageError("no timed run exists to fit costs to; measure some with --timers on")
        self.laws = {key: make_law(*_means(found)) for key, found in points.items()}

    def lacks(self, row: Row) -> list[Part]:
        """Return the timed parts of a run that no law is known of."""
        choice = Choice.from_json(row.request)
        return [part for part in parts_of(row.records) if (part, choice.ranks * choice.threads) not in self.laws]

    def predict(self, row: Row) -> Prediction:
        """Return the prediction for a run, from its work and the calls of its parts; its times are not used.

        Raises UsageError for a number of processing elements or a part without a law.
        """
        choice = Choice.from_json(row.request)
        pes = choice.ranks * choice.threads
        seconds = {}
        for part, (calls, _) in parts_of(row.records).items():
            if (part, pes) not in self.laws:
                raise UsageError(
                    f"no run with {pes} processing elements has timed '{part.name}' of stage '{part.stage}'; measure "
                    "one"
                )
            amount = amount_of(choice, part)
            seconds[part] = calls * max(0.0, segments.evaluate(self.laws[part, pes], amount))
        return Prediction(seconds)


def _means(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return amounts of work in rising order and seconds of each: runs with the same amount count once, by their
    mean.
    """
    by_amount: dict[float, list[float]] = defaultdict(list)
    for amount, value in points:
        by_amount[amount].append(value)
    amounts = sorted(by_amount)
    return amounts, [statistics.fmean(by_amount[amount]) for amount in amounts]


def by_rule(amounts: Sequence[float], seconds: Sequence[float]) -> Law:
    """Return the law by the study's rule: lines fitted by relative errors, a new one where a point is 30 % off."""
    if len(amounts) < 2:
        return one_line(amounts, seconds)
    return fit.pieces(amounts, seconds, fit.breaks_by_rule(amounts, seconds, threshold=THRESHOLD))


def joined(amounts: Sequence[float], seconds: Sequence[float]) -> Law:
    """Return the law that joins measured points; the first and the last line go on."""
    if len(amounts) < 3:
        return one_line(amounts, seconds)
    slopes = [(t - s) / (b - a) for (a, b), (s, t) in zip(pairwise(amounts), pairwise(seconds), strict=True)]
    starts, ends = [0.0, *amounts[1:-1]], [*amounts[1:-1], math.inf]
    return [
        segments.Segment(start, end, s - slope * a, slope)
        for start, end, a, s, slope in zip(starts, ends, amounts, seconds, slopes, strict=False)
    ]


def one_line(amounts: Sequence[float], seconds: Sequence[float]) -> Law:
    """Return the law of a single line, by relative errors; a single amount has no slope."""
    if len(amounts) < 2:
        return [segments.Segment(0.0, math.inf, seconds[0], 0.0)]
    return [segments.Segment(0.0, math.inf, *fit.line(amounts, seconds))]


def repeatability(row: Row) -> float:
    """Return the difference between halves of a run's launches, relative to their mean; 0 with one launch."""
    by_launch = [statistics.fmean(records.step_times(r)) for r in row.records]
    if len(by_launch) < 2:
        return 0.0
    first, second = (statistics.median(by_launch[k::2]) for k in (0, 1))
    return abs(first - second) / statistics.fmean((first, second))
