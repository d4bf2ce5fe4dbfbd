"""Predictions of third-party exchanges: errors by regime, regrets of the recommended choice, cross-validation."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from haloscope.errors import HaloscopeError, UsageError, unknown_name
from haloscope.fit import external_predictions
from haloscope.fit.external_fit import Fit, fit
from haloscope.fit.external_table import Measured, Table
from haloscope.records.regret import group_cases, mean_regret
from haloscope.records.relative_errors import Errors, group_errors

Condition = tuple[str, frozenset[str]]


def _grid(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


# Axes by which rows are selected and grouped, as words of the command line.
AXES: dict[str, Callable[[Measured], str]] = {
    "nodes": lambda r: str(r.nodes),
    "threads": lambda r: str(r.threads),
    "cells": lambda r: _grid(r.cells),
    "halo": lambda r: str(r.halo),
    "fields": lambda r: str(r.fields),
    "element_bytes": lambda r: str(r.element_bytes),
    "program": lambda r: r.program,
    "strategy": lambda r: r.strategy,
    "machine": lambda r: r.machine,
}
GROUPED = ("threads", "nodes", "cells", "halo", "fields", "element_bytes", "program")


def parse_condition(text: str) -> Condition:
    """Return the axis and the values of AXIS=VALUE,... Raises UsageError for an unknown axis or no value."""
    axis, equals, values = text.partition("=")
    if not equals or not values.strip():
        raise UsageError(f"'{text}' is not a condition; write AXIS=VALUE,... such as nodes=1,27")
    refuse_unknown_axes([axis])
    return axis, frozenset(v.strip() for v in values.split(","))


def refuse_unknown_axes(axes: Iterable[str]) -> None:
    """Raise UsageError for a word that is not an axis."""
    for axis in axes:
        if axis not in AXES:
            raise UsageError(unknown_name("axis", axis, AXES))


def select(rows: Iterable[Measured], conditions: Sequence[Condition]) -> list[Measured]:
    """Return the rows that meet all conditions.

    Raises UsageError for a value that no row has, which is usually a misspelling.
    """
    rows = list(rows)
    for axis, values in conditions:
        there = {AXES[axis](row) for row in rows}
        for value in sorted(values - there):
            raise UsageError(f"no row has {axis}={value}; there are {', '.join(sorted(there))}")
    return [row for row in rows if all(AXES[axis](row) in values for axis, values in conditions)]


def half_of_cases(rows: Sequence[Measured]) -> list[Measured]:
    """Return the rows of half of the cases, spread evenly: the default of a fit.

    Cases are numbered from 0 in the order of the file; a case is returned if its number has an even count of binary
    ones. In a file that alternates between two numbers of fields, every other case would have the same number.
    """
    numbers: dict[tuple, int] = {}
    for row in rows:
        numbers.setdefault(row.case, len(numbers))
    return [row for row in rows if numbers[row.case].bit_count() % 2 == 0]


def choose(
    found: Table, other: Table | None, fit_on: Sequence[str], holdout: Sequence[str]
) -> tuple[list[Measured], str]:
    """Return the rows to fit and a description of them: all rows of another table, or some rows of the judged one.

    fit_on, holdout: conditions in the user's words. Raises as `parse_condition` and `select` do.
    """
    if other:
        return list(other.rows), f"Costs are fitted to the {len(other.rows)} exchanges of {other.path} alone."
    conditions = [parse_condition(text) for text in (*fit_on, *holdout)]
    words = " and ".join(fit_on or holdout)
    chosen = select(found.rows, conditions)
    if holdout:
        without = {row.key for row in chosen}
        chosen = [row for row in found.rows if row.key not in without]
        selection = f"but those with {words}"
    elif fit_on:
        selection = f"with {words}"
    else:
        chosen = half_of_cases(found.rows)
        selection = "of half of the cases"
    return (
        chosen,
        f"Costs are fitted to {len(chosen)} of the {len(found.rows)} exchanges of {found.path}: all {selection} alone.",
    )


@dataclass(frozen=True)
class Pair:
    """One exchange, measured and predicted. terms: seconds of the prediction. regime: its bottleneck."""

    row: Measured
    predicted_s: float
    terms: Mapping[str, float]
    regime: str

    @property
    def error(self) -> float:
        """Predicted over measured, less 1: positive where the model is too slow."""
        return self.predicted_s / self.row.median_s - 1


@dataclass(frozen=True)
class Judged:
    """The compared exchanges, and the number of exchanges that could not be predicted, by reason."""

    pairs: tuple[Pair, ...]
    left_out: Mapping[str, int]


def judge(rows: Sequence[Measured], fitted: Fit, on_step: Callable[[int], None] = lambda _: None) -> Judged:
    """Predict some rows with fitted costs. on_step: called with the number of each row. Cost: milliseconds a row."""
    external_predictions.declare(rows)
    teams: dict[tuple, list[Measured]] = defaultdict(list)
    for row in rows:
        teams[row.machine, row.program, row.threads, row.nodes, row.sockets, row.cores].append(row)
    pairs, left_out, count = [], Counter[str](), 0
    for team in teams.values():
        try:
            profile = external_predictions.with_kernels(fitted.profile_of(team[0]), team)
        except HaloscopeError as problem:
            left_out[str(problem)] += len(team)
            continue
        for row in team:
            on_step(count := count + 1)
            try:
                found = external_predictions.predict_row(row, profile)
            except HaloscopeError as problem:
                left_out[str(problem)] += 1
                continue
            pairs.append(Pair(row, found.time_s, found.terms, found.regime))
    order = {row.key: number for number, row in enumerate(rows)}
    return Judged(tuple(sorted(pairs, key=lambda p: order[p.row.key])), dict(left_out.most_common()))


def _by_axis(value_of: Callable[[Measured], str]) -> Callable[[Pair], str]:
    """Return a function that returns the value of a pair's row on an axis."""
    return lambda pair: value_of(pair.row)


def grouped(pairs: Sequence[Pair]) -> list[Errors]:
    """Return the errors of all pairs, then by regime, by strategy and by each axis that varies."""
    found = [group_errors("all", [p.error for p in pairs])]
    keys: list[tuple[str, Callable[[Pair], str]]] = [("", lambda p: p.regime)]
    keys += [(f"{axis} ", _by_axis(AXES[axis])) for axis in GROUPED]
    keys += [("", lambda p: " ".join(p.row.way))]
    for prefix, key in keys:
        groups: dict[str, list[float]] = defaultdict(list)
        for pair in pairs:
            groups[key(pair)].append(pair.error)
        if len(groups) > 1 or not prefix:
            found += [group_errors(prefix + name, groups[name]) for name in sorted(groups, key=_natural)]
    return found


def _natural(text: str) -> tuple:
    return (0, float(text), "") if text.isdigit() else (1, 0.0, text)


@dataclass(frozen=True)
class ExternalCase:
    """One case measured in several ways: the model's recommendation, and its measured time over the measured best."""

    pairs: tuple[Pair, ...]

    @property
    def pick(self) -> Pair:
        """The pair that is predicted fastest."""
        return min(self.pairs, key=lambda p: p.predicted_s)

    @property
    def best(self) -> Pair:
        """The pair that was measured fastest."""
        return min(self.pairs, key=lambda p: p.row.median_s)

    @property
    def regret(self) -> float:
        """Measured time of the pick over that of the best; 1 where they are the same."""
        return self.pick.row.median_s / self.best.row.median_s

    def regret_of(self, way: tuple[str, str]) -> float:
        """Return the regret of one way, of which the case must have a measurement."""
        return next(p for p in self.pairs if p.row.way == way).row.median_s / self.best.row.median_s


def cases(pairs: Sequence[Pair]) -> list[ExternalCase]:
    """Return the cases that were measured in two ways or more, the largest regret first."""
    found = [ExternalCase(tuple(group)) for group in group_cases(pairs, lambda pair: pair.row.case)]
    return sorted(found, key=lambda case: -case.regret)


@dataclass(frozen=True)
class Regret:
    """Regrets over cases: geometric mean and worst, of the recommendation and of the best constant choice.

    constant: the choice with the smallest mean; None if no way was measured in all cases.
    """

    count: int
    mean: float
    worst: float
    constant: tuple[str, str] | None
    constant_mean: float
    constant_worst: float


def summarize_regret(found: Sequence[ExternalCase]) -> Regret | None:
    """Return the regrets of some cases; None without cases."""
    if not found:
        return None
    own = [case.regret for case in found]
    everywhere = set.intersection(*({p.row.way for p in case.pairs} for case in found))
    by_way = {way: [case.regret_of(way) for case in found] for way in sorted(everywhere)}
    constant = min(by_way, key=lambda way: mean_regret(by_way[way]), default=None)
    theirs = by_way[constant] if constant else [math.nan]
    return Regret(len(own), mean_regret(own), max(own), constant, mean_regret(theirs), max(theirs))


@dataclass(frozen=True)
class Fold:
    """Predictions of some rows by a fit without them. left_out: their common axis and value."""

    left_out: str
    judged: Judged


def cross_validate(
    rows: Sequence[Measured], axis: str, on_step: Callable[[float, str], None] = lambda _, __: None
) -> list[Fold]:
    """Fit without all rows of one value of an axis and predict these, for each value in turn.

    on_step: called with the part done and the excluded value. Raises UsageError if the axis has only one value. Cost:
    one fit per value.
    """
    values = sorted({AXES[axis](row) for row in rows}, key=_natural)
    if len(values) < 2:
        raise UsageError(f"all rows have {axis}={values[0]}, so nothing is left to fit without it; choose another axis")
    folds = []
    for number, value in enumerate(values):
        on_step(number / len(values), f"{axis}={value}")
        others = [row for row in rows if AXES[axis](row) != value]
        found = judge([row for row in rows if AXES[axis](row) == value], fit(others, f"all but {axis}={value}"))
        folds.append(Fold(f"{axis}={value}", found))
    return folds
