"""Tuning: the model orders the candidates, short measurements eliminate the slow ones, longer ones decide.

Successive halving (Jamieson, Talwalkar 2016, algorithm 1) in rounds of equal time: each round measures longer and
therefore fewer candidates, the fastest of the last round first. A candidate is dropped for one of three reasons, which
is recorded: it is slower than the best by more than the noise, it failed, or the time was up before its turn.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from haloscope import bridge, records
from haloscope.errors import HaloscopeError, UnavailableError, UsageError
from haloscope.measure import isolated, space
from haloscope.measure.request import Request
from haloscope.model import predict
from haloscope.model.profile import Profile
from haloscope.records import stats
from haloscope.records.rows import Row, group_rows

SHARE, MOST_S = 0.1, 60.0  # default limits of tuning: a share of the exhaustive time, and seconds
NOISE = 0.02  # launches that differ less are indistinguishable, however well their repetitions agree
ALIKE = 0.1  # delay of the turn of each further candidate with the same prediction: they may be equivalent
LEAST = 4  # candidates that the first round measures even when its time is up; later rounds measure half
DEFAULT: dict[str, Any] = {"strategy": "ordered/p2p", "schedule": "bulk", "depth": 1, "reorder": "none"}

Once = Callable[[Request, str], dict]  # measure a request in a launch of that name -> its record


@dataclass(frozen=True)
class Length:
    """The measuring time of a launch: `repetitions` of `seconds` each, after one to warm up."""

    seconds: float
    repetitions: int

    @property
    def total(self) -> float:
        """Seconds that a launch spends in time steps."""
        return self.seconds * (self.repetitions + 1)

    def of(self, request: Request) -> Request:
        """Return the request with this measuring time."""
        return request.measured(seconds=self.seconds, repetitions=self.repetitions, warmup=1)


MORE = "-more-"  # in the names of launches that repeat a round
FURTHER, FEW = 4, 3  # most further launches in the last round, and most candidates in them
ROUNDS = (Length(0.02, 3), Length(0.05, 5), Length(0.2, 5))  # the last is the default of `haloscope run`


@dataclass
class TimedCandidate:
    """One candidate: its prediction (seconds per step or None), its measurements by launch, and its fate.

    fate: the reason for dropping it, "" while it is in. rounds: the number of rounds in which it was measured.
    """

    request: Request
    predicted_s: float | None = None
    launches: dict[str, list[float]] = field(default_factory=dict)
    rounds: int = 0
    fate: str = ""

    @property
    def id(self) -> str:
        """The request's name."""
        return self.request.id

    @property
    def time_s(self) -> float:
        """Median seconds per step of its launches in the last round that measured it; infinite without any."""
        if not self.launches:
            return float("inf")
        last = round_of(list(self.launches)[-1])
        return statistics.median(statistics.median(t) for name, t in self.launches.items() if round_of(name) == last)


def round_of(launch: str) -> str:
    """Return the round that a launch belongs to, by its name."""
    return launch.partition(MORE)[0]


# ---- the order of trials ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Order:
    """Candidates in the order of trials; reasons for missing predictions, with the number of candidates."""

    candidates: tuple[TimedCandidate, ...]
    unpriced: dict[str, int]


def order(
    requests: Sequence[Request],
    profile: Profile | None,
    setting: predict.RunSettings = predict.DEFAULTS,
    seed: int = 0,
) -> Order:
    """Put candidates in order: DEFAULT first, then by predicted time with equal ones spread out, then in random order
    candidates without a prediction.

    profile: None orders all randomly. Cost: one prediction each, milliseconds.
    """
    unpriced: Counter[str] = Counter()
    candidates = []
    for request in space.shuffled(requests, seed, 0):
        try:
            seconds = _predicted(request, profile, setting) if profile else None
        except (UnavailableError, UsageError) as problem:
            seconds = None
            unpriced[str(problem)] += 1
        candidates.append(TimedCandidate(request, seconds))
    turns = {e.id: turn for e, turn in zip(candidates, _turns([e.predicted_s for e in candidates]), strict=True)}
    candidates.sort(key=lambda e: (not is_default(e.request), turns[e.id]))
    return Order(tuple(candidates), dict(unpriced.most_common()))


def _turns(predicted: Sequence[float | None]) -> list[float]:
    """Return the sorting keys: times, with the k-th of equal times k x ALIKE longer (k from 0); infinite for None."""
    seen: Counter[str] = Counter()
    turns = []
    for seconds in predicted:
        key = f"{seconds or 0:.9e}"
        turns.append(float("inf") if seconds is None else seconds * (1 + ALIKE * seen[key]))
        seen[key] += 1
    return turns


def _predicted(request: Request, profile: Profile, setting: predict.RunSettings) -> float:
    return predict.predict(request.choice, profile, setting, samples=0).time_s


class Levelling:
    """Scales measured times to the machine speed of the first record, by the ratio of predictions for the two speeds.

    Without a profile, or without comparable speeds, times stay unchanged.
    """

    def __init__(self, profile: Profile | None, setting: predict.RunSettings = predict.DEFAULTS):
        """Store the parameters, without a prediction."""
        self._profile, self._setting = profile, setting
        self._first: Profile | None = None

    @property
    def in_use(self) -> bool:
        """True when some record had a comparable machine speed."""
        return self._first is not None

    def factor(self, request: Request, record: dict) -> float:
        """Return the factor for the times of a record. Cost: two predictions."""
        found = record.get("pace")
        if self._profile is None or found is None or str(found["ranks"]) not in self._profile.paces:
            return 1.0
        there = self._profile.at_pace(found)
        if self._first is None:
            self._first = there
        try:
            return _predicted(request, self._first, self._setting) / _predicted(request, there, self._setting)
        except (UnavailableError, UsageError):
            return 1.0


def is_default(request: Request) -> bool:
    """Return whether a request is the default: the plain exchange `ordered/p2p`, bulk, at depth 1."""
    return all(getattr(request.choice, name) == value for name, value in DEFAULT.items())


# ---- the trials ------------------------------------------------------------------------------------------------------


@dataclass
class TrialRounds:
    """Successive halving over candidates in their order.

    once: measures a request in a launch of the passed name and returns its record, whose `tuning.wall_s` counts as
    spent. budget_s: seconds for all rounds, None: SHARE of the time to measure every candidate as long as the last
    round does, at most MOST_S. level: scales the times of different launches to one machine speed. noise: least
    relative difference that counts; launches of the same request at both ends of a round may show larger noise.
    """

    candidates: Sequence[TimedCandidate]
    once: Once
    budget_s: float | None = None
    rounds: Sequence[Length] = ROUNDS
    noise: float = NOISE
    level: Levelling = field(default_factory=lambda: Levelling(None))
    on_step: Callable[[str], None] = lambda text: None
    spent_s: float = 0.0
    seen_noise: list[float] = field(default_factory=list)  # by round
    starting_s: list[float] = field(default_factory=list)  # wall time of launches beyond their time steps

    def run(self) -> TrialRounds:
        """Run all rounds. Raises HaloscopeError when every candidate that was tried failed."""
        alive = list(self.candidates)
        for number, length in enumerate(self.rounds, 1):
            tried = self._round(number, length, alive)
            good = [e for e in tried if not e.fate]
            if not good:
                raise HaloscopeError(self._nothing())
            self._drop(min(good, key=lambda e: e.time_s), good, self.seen_noise[-1])
            alive = sorted((e for e in good if not e.fate), key=lambda e: e.time_s)
            if len(alive) == 1:
                return self
        self._again(alive)
        return self

    @property
    def ranking(self) -> list[TimedCandidate]:
        """Candidates still in, fastest first; then dropped ones, the latest first; last the unmeasured ones."""
        return sorted(self.candidates, key=lambda e: (bool(e.fate), -e.rounds, e.time_s))

    @property
    def exhaustive_s(self) -> float:
        """Seconds that one launch of every candidate would take, with the length of the last round."""
        return self._each(self.rounds[-1]) * len(self.candidates)

    def _each(self, length: Length) -> float:
        """Return the seconds that one launch of that length takes, start included; 0 before the first has ended."""
        return statistics.mean(self.starting_s) + length.total if self.starting_s else 0.0

    def _round(self, number: int, length: Length, alive: Sequence[TimedCandidate]) -> list[TimedCandidate]:
        """Measure candidates while time allows, then the first one again; drop the rest. Returns the measured ones."""
        tried: list[TimedCandidate] = []
        name, least = f"round-{number}", LEAST if number == 1 else LEAST // 2
        for candidate in alive:
            needed = 2 * self._each(length)  # for it, and for the first one again
            if len(tried) >= least and self.spent_s + needed > self._until(number):
                candidate.fate = (
                    "time was up before its turn" if number > 1 else "not measured: time was up before its turn"
                )
                continue
            self._measure(candidate, length, name)
            tried.append(candidate)
        self.seen_noise.append(self._repeat(tried, length, name))
        return tried

    def _again(self, alive: Sequence[TimedCandidate]) -> None:
        """Spend the rest of the budget on the fastest few in turn: a single launch may have been fast by chance."""
        length, last = self.rounds[-1], f"round-{len(self.rounds)}"
        for number in range(1, FURTHER + 1):
            few = sorted((e for e in alive if not e.fate), key=lambda e: e.time_s)[:FEW]
            if len(few) < 2 or self.spent_s + len(few) * self._each(length) > self._budget:
                return
            for candidate in few:
                self._measure(candidate, length, f"{last}{MORE}{number}")

    def _until(self, number: int) -> float:
        """Return the seconds that may be spent by the end of a round; unused time passes to the next round."""
        return self._budget * number / len(self.rounds)

    @property
    def _budget(self) -> float:
        return min(MOST_S, SHARE * self.exhaustive_s) if self.budget_s is None else self.budget_s

    @property
    def part(self) -> float:
        """Spent time over the budget, 0 to 1."""
        return min(1.0, self.spent_s / self._budget) if self._budget else 0.0

    def _measure(self, candidate: TimedCandidate, length: Length, name: str) -> None:
        record = self._shot(candidate, length, name)
        if isolated.ended_well(record):
            candidate.launches[name] = self._times(candidate, record)
            candidate.rounds += MORE not in name
        else:
            candidate.fate = f"failed: {isolated.reason(record)}"

    def _times(self, candidate: TimedCandidate, record: dict) -> list[float]:
        """Return seconds per step of each repetition, at the machine speed of the trials."""
        factor = self.level.factor(candidate.request, record)
        return [seconds * factor for seconds in records.step_times(record)]

    def _shot(self, candidate: TimedCandidate, length: Length, name: str) -> dict:
        record = self.once(length.of(candidate.request), name)
        wall = record["tuning"]["wall_s"]
        self.spent_s += wall
        if isolated.ended_well(record):
            self.starting_s.append(max(0.0, wall - length.total))
        self.on_step(candidate.id)
        return record

    def _repeat(self, tried: Sequence[TimedCandidate], length: Length, name: str) -> float:
        """Return the relative difference of launches of one request at both ends of the round; at least `noise`."""
        first = next((e for e in tried if not e.fate), None)
        if first is None or len(tried) == 1:
            return self.noise
        record = self._shot(first, length, f"{name}-again")
        if not isolated.ended_well(record):
            first.fate = f"failed: {isolated.reason(record)} (the second time)"
            return self.noise
        ratio = statistics.median(self._times(first, record)) / first.time_s
        return min(0.9, max(self.noise, abs(ratio - 1), abs(1 / ratio - 1)))

    def _drop(self, best: TimedCandidate, good: Sequence[TimedCandidate], noise: float) -> None:
        """Drop candidates that remain slower than the best if noise slowed their launches and favoured the best."""
        for candidate in good:
            ratio = stats.ratio_of_launches(candidate.launches, best.launches)
            if candidate is not best and ratio.low > (1 + noise) / (1 - noise):
                candidate.fate = f"{ratio.value:.2f} times the best, noise {noise:.0%}"

    def _nothing(self) -> str:
        reasons = Counter(e.fate for e in self.candidates if e.fate.startswith("failed"))
        text, count = reasons.most_common(1)[0]
        return f"no candidate could be measured; {count} {text}"


# ---- confirmation ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rerun:
    """Requests measured again, interleaved: rows by id, and the seconds that this took."""

    rows: dict[str, Row]
    wall_s: float

    def ratio(self, other: Request, choice: Request) -> stats.Estimate | None:
        """Return the ratio of two times by launch: above 1 where `choice` is faster; None if one was not measured."""
        if other.id not in self.rows or choice.id not in self.rows:
            return None
        return stats.ratio_of_launches(self.rows[other.id].launches, self.rows[choice.id].launches)


def rerun(
    paired: Callable, requests: Sequence[Request], launches: int, name: str, length: Length = ROUNDS[-1]
) -> Rerun:
    """Measure some requests again, all in each launch, in random order. paired: as `isolated.Isolated.paired`."""
    distinct = list({r.id: length.of(r) for r in requests}.values())
    found, wall = paired(distinct, launches, name)
    return Rerun({row.id: row for row in group_rows(r for r in found if isolated.ended_well(r))}, wall)


def decide(winner: Request, others: Sequence[Request], again: Rerun) -> Request:
    """Return the winner, or the fastest of the others where the re-run shows others to be faster."""
    ratios = [(other, again.ratio(winner, other)) for other in others if other.id != winner.id]
    faster = [(r.value, other) for other, r in ratios if r and stats.verdict_text(r, "faster", "slower", 3) == "faster"]
    return max(faster, key=lambda pair: pair[0])[1] if faster else winner


def exhaustively(
    candidates: Sequence[TimedCandidate], once: Once, length: Length = ROUNDS[-1]
) -> tuple[list[Request], float]:
    """Measure every candidate once, at full length. Returns the requests, fastest first, and the seconds that all took.

    Raises HaloscopeError when none could be measured.
    """
    times, spent = {}, 0.0
    for candidate in candidates:
        record = once(length.of(candidate.request), "exhaustive")
        spent += record["tuning"]["wall_s"]
        if isolated.ended_well(record):
            times[candidate.id] = (statistics.median(records.step_times(record)), candidate.request)
    if not times:
        raise HaloscopeError("no candidate could be measured")
    return [request for _, request in sorted(times.values(), key=lambda pair: pair[0])], spent


def default_of(request: Request) -> Request | None:
    """Return the plain exchange of the same grid, ranks and threads; None where it is not legal."""
    choice = request.choice
    strategy = bridge.device_strategy_names()[0] if choice.device else DEFAULT["strategy"]
    plain = dataclasses.replace(choice, **DEFAULT | {"strategy": strategy}, stage_strategies=(), memory="own")
    plain = space.normal(plain)
    verify = min(request.verify, 3)  # two whole exchanges and one more step, as for all others
    return None if bridge.illegal(plain) else request.with_choice(plain).measured(verify=verify)
