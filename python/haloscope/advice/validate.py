"""Predictions against measurements: signed errors, coverage of the intervals, order, and regret of the model's pick.

Every measured configuration is predicted once, from the request in its records. Records that cannot be compared are
counted by reason. Two times are compared: the time of a step, and the time of the exchange alone where the records
hold it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope import bridge
from haloscope.errors import HaloscopeError, UsageError
from haloscope.model import held_out, pace, predict
from haloscope.model import profile as profiles
from haloscope.model.held_out import NOMINAL
from haloscope.model.profile import Profile
from haloscope.records import stats
from haloscope.records.regret import group_cases
from haloscope.records.relative_errors import Errors, group_errors
from haloscope.records.rows import Row, group_rows
from haloscope.records.text import cell

# One choice is made per case.
CASE = (
    "app",
    "form",
    "real",
    "cells",
    "periodic",
    "ranks",
    "nodes",
    "placement",
    "barrier",
)


@dataclass(frozen=True)
class Pair:
    """One configuration measured and predicted; seconds per time step.

    paced: the prediction is for the machine speed of its launches, else for the speed of the calibration.
    exchange_s: measured, see predict.EXCHANGE_PHASES; None where the records do not hold it.
    """

    row: Row
    prediction: predict.Prediction
    exchange_s: float | None
    paced: bool = False

    @property
    def regime(self) -> str:
        """The resource that bounds the predicted step."""
        return self.prediction.regime

    @property
    def exchange_regime(self) -> str:
        """The resource that bounds the predicted exchange."""
        return self.prediction.exchange_regime

    @property
    def error(self) -> float:
        """Predicted over measured step time, minus 1: positive where the model is too slow."""
        return self.prediction.time_s / self.row.step.value - 1

    @property
    def exchange_error(self) -> float | None:
        """The same for the exchange itself; None where it was not measured."""
        return self.prediction.exchange_s / self.exchange_s - 1 if self.exchange_s else None

    @property
    def covered(self) -> bool | None:
        """True when the measured step lies in the predicted interval; None where the prediction has no interval."""
        ends = self.prediction.interval
        return None if ends is None else ends[0] <= self.row.step.value <= ends[1]

    @property
    def exchange_covered(self) -> bool | None:
        """The same for the exchange itself; None where it was not measured, or its prediction has no interval."""
        ends = self.prediction.exchange_interval
        return None if ends is None or not self.exchange_s else ends[0] <= self.exchange_s <= ends[1]


@dataclass(frozen=True)
class MeasuredCase:
    """All choices measured for one case: the model's pick, the fastest choice, and the regret of the pick.

    order: rank correlation (Kendall's tau) of predicted and measured times, NaN where all times of either are equal.
    regret: measured time of the pick over the time of the fastest, paired by launch; 1 where they are the same.
    """

    name: str
    count: int
    order: float
    pick: Pair
    best: Pair
    regret: stats.Estimate


@dataclass(frozen=True)
class Validation:
    """The compared configurations, those with more threads than cores separately, and reasons of omitted ones."""

    pairs: tuple[Pair, ...]
    crowded: tuple[Pair, ...]
    left_out: Mapping[str, int]
    warnings: tuple[str, ...]


def validate(found: Iterable[dict], profile: Profile, samples: int = predict.SAMPLES) -> Validation:
    """Predict every measured configuration of some records, at the machine speed of its launches where it is known.

    found: records as returned by `records.read`; launches of several files must have different ids. samples: number of
    parameter samples for the intervals, 0 = none. `left_out` counts by reason the configurations that failed their
    check, whose costs the profile lacks, or that a prediction does not describe.
    """
    found = list(found)
    left_out = Counter(f"{r['kind']}: {r['reason']}" for r in found if r["kind"] in ("skipped", "failed"))
    left_out.update(
        f"a record of kind {r['kind']} holds no time steps"
        for r in found
        if r["kind"] not in ("measurement", "skipped", "failed")
    )
    table = group_rows(found)
    pairs = []
    for row in table:
        try:
            pairs.append(_pair(row, profile, samples))
        except HaloscopeError as problem:
            left_out[str(problem)] += 1
    roomy, crowded = (tuple(p for p in pairs if p.row.oversubscribed is many) for many in (False, True))
    return Validation(roomy, crowded, dict(left_out.most_common()), tuple(foreign(table, profile)))


def _pair(row: Row, profile: Profile, samples: int) -> Pair:
    if row.verification == "failed":
        raise HaloscopeError("its result differs from `reference`, so its time means nothing")
    if row.step.value <= 0:
        raise HaloscopeError("its measured time is 0")
    choice, setting = bridge.Choice.from_json(row.request), setting_of(row)
    there = at_paces_of(row, profile)
    found = [predict.predict(choice, one, setting, samples) for one in there]
    return Pair(row, predict.median(found), exchange_of(row), there[0] is not profile)


def at_paces_of(row: Row, profile: Profile) -> list[Profile]:
    """Return the profile at the machine speed of each launch of a row; unchanged without comparable speeds.

    The machine may have been in different states during the launches. With a profile that records a single state, the
    launches' median speed counts.
    """
    launches: dict[str, list[dict]] = defaultdict(list)
    for record in row.records:
        launches[record["launch"]["id"] if "states" in profile.data else ""].append(record)
    paces = [pace.of_records(found) for found in launches.values()]
    known = [found for found in paces if found is not None and str(found["ranks"]) in profile.paces]
    return [profile.at_pace(found) for found in known] or [profile]


def setting_of(row: Row) -> predict.RunSettings:
    """Return the setting of a measurement for its prediction: the number of iterations of its loops per step."""
    record = row.records[0]
    counts, step = record["counts"].get("stages", {}), bridge.step_of(bridge.Choice.from_json(row.request))
    loops = [counts[step.stages[loop[0]].name] for loop in step.loops]
    return predict.RunSettings(repeats=round(max(loops) / record["request"]["steps"]) if loops else 1)


def exchange_of(row: Row) -> float | None:
    """Return the seconds per step of the exchange, waiting included, in the mean over ranks; None where phases lack it.

    Only phases of the control thread are timed, which do not cover a communication thread. Runs without timers have no
    phases; with one rank, the exchange consists of copies.
    """
    request = row.request
    hidden = request["schedule"] == "comm-thread" and request["threads"] > 1
    if hidden or not request.get("timers", True) or request["ranks"] == 1:
        return None
    return sum(row.phase(name, "mean") for name in predict.EXCHANGE_PHASES) or None


def foreign(table: Sequence[Row], profile: Profile) -> list[str]:
    """Return warnings where the records come from another machine or MPI than the profile."""
    environments = [record["environment"] for row in table for record in row.records]
    cpus, libraries = ([e[key] for e in environments if key in e] for key in ("cpu", "mpi_library"))
    return profile.foreign(cpus, libraries, "the records")


# ---- summaries of the pairs ------------------------------------------------------------------------------------------


def grouped(pairs: Sequence[Pair], exchange: bool = False) -> list[Errors]:
    """Return the errors of all, then per strategy, then per regime. exchange: of the exchange itself."""
    all_values = [(p, p.exchange_error if exchange else p.error) for p in pairs]
    values = [(p, e) for p, e in all_values if e is not None]
    if not values:
        return []
    keys: tuple[Callable[[Pair], str], ...] = (
        lambda p: p.prediction.choice.strategy,
        lambda p: p.exchange_regime if exchange else p.regime,
    )
    found = [group_errors("all", [e for _, e in values])]
    for key in keys:
        names = sorted({key(p) for p, _ in values})
        found += [group_errors(name, [e for p, e in values if key(p) == name]) for name in names]
    return found


def pace_against(pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the median pace of the measurements over the pace of the calibration, by kind; empty where unknown."""
    found = [p.prediction.pace for p in pairs if p.paced]
    return {kind: float(np.median([f[kind] for f in found])) for kind in pace.KINDS} if found else {}


def residuals(pairs: Sequence[Pair]) -> dict:
    """Return residuals of predictions as section `held_out` of profiles: for intervals of steps and of exchanges.

    pairs: of measurements to which the profile was not fitted.
    """
    times = sorted(r["launch"]["time_utc"] for p in pairs for r in p.row.records if "time_utc" in r["launch"])
    exchanges = [p for p in pairs if p.exchange_s and p.prediction.exchange_s > 0]
    return {
        **({"measured": [times[0], times[-1]]} if times else {}),
        "step": held_out.by_regime((p.regime, math.log(p.row.step.value / p.prediction.time_s)) for p in pairs),
        "exchange": held_out.by_regime(
            (p.exchange_regime, math.log((p.exchange_s or 0) / p.prediction.exchange_s)) for p in exchanges
        ),
    }


def refuse_shipped(profile: str) -> None:
    """Raise UsageError for a profile that cannot store intervals, as it comes with the package."""
    if profile in profiles.names():
        raise UsageError(
            f"--keep-intervals writes into the profile, and '{profile}' comes with the package; pass a file of yours"
        )


def keep(pairs: Sequence[Pair], profile: Profile, file: str) -> dict:
    """Write a profile with the residuals of some pairs to a file; return them.

    Raises UsageError when the pairs are too few for intervals.
    """
    found = residuals(pairs)
    if not found["step"]:
        raise UsageError(
            f"{len(pairs)} choices are too few for intervals of 90 %; pass records of 19 or more, better of hundreds"
        )
    profiles.save(profile.data | {"held_out": found}, file)
    return found


def are_held_out(pairs: Sequence[Pair], profile: Profile) -> bool:
    """Return whether intervals of the profile come from other measurements than these, or from none."""
    measured = profile.data.get("held_out", {}).get("measured")
    times = [r["launch"]["time_utc"] for p in pairs for r in p.row.records if "time_utc" in r["launch"]]
    return not (measured and any(measured[0] <= time <= measured[1] for time in times))


@dataclass(frozen=True)
class Coverage:
    """The number of measurements in their predicted intervals, and the probability of that if NOMINAL is right.

    inside, count: measurements inside, and all of them. p_value: of a two-sided binomial test. from_held_out: number of
    intervals from held-out measurements instead of the profile's parameters.
    """

    inside: int
    count: int
    p_value: float
    from_held_out: int = 0


def coverage(pairs: Sequence[Pair], exchange: bool = False) -> Coverage | None:
    """Return the coverage of the intervals, with a two-sided binomial test; None where no prediction has an interval.

    exchange: of the exchange itself.
    """
    from scipy.stats import binomtest

    found = [(p.exchange_covered if exchange else p.covered, p.prediction.interval_from) for p in pairs]
    states = [(covered, source) for covered, source in found if covered is not None]
    if not states:
        return None
    inside, from_held_out = sum(covered for covered, _ in states), sum(source != "" for _, source in states)
    return Coverage(inside, len(states), float(binomtest(inside, len(states), NOMINAL).pvalue), from_held_out)


def cases(pairs: Sequence[Pair]) -> list[MeasuredCase]:
    """Return for each case with at least two choices the order, the pick and its regret, the largest regret first.

    The fastest measured choice was fast partly by chance, so a regret from records tends to be too large.
    """
    groups = group_cases(pairs, lambda pair: tuple(str(pair.row.request.get(axis)) for axis in CASE))
    return sorted(map(_case, groups), key=lambda case: -case.regret.value)


def _case(group: Sequence[Pair]) -> MeasuredCase:
    from scipy.stats import kendalltau

    pick = min(group, key=lambda p: p.prediction.time_s)
    best = min(group, key=lambda p: p.row.step.value)
    predicted, measured = [p.prediction.time_s for p in group], [p.row.step.value for p in group]
    request = pick.row.request
    name = f"{request['app']} {cell(request['cells'])}, {request['ranks']} ranks"
    name += f" on {request['nodes']} nodes" if request.get("nodes") else ""
    name += f", {request['real']}" if request.get("real", "f64") != "f64" else ""
    if pick is best:
        regret = stats.Estimate(1.0, 1.0, 1.0, pick.row.step.samples, pick.row.step.launches)
    else:
        regret = stats.ratio_of_launches(pick.row.launches, best.row.launches)
    constant = len(set(predicted)) == 1 or len(set(measured)) == 1
    order = math.nan if constant else float(kendalltau(predicted, measured).statistic)
    return MeasuredCase(name, len(group), order, pick, best, regret)
