"""Times and ratios over launches: the geometric mean, with Student's interval, so that a ratio of two times in a table
is the quotient of the two.

A time in a launch is the mean of its repetitions, which the timers count too. One launch has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from haloscope.records import stats
from haloscope.records.rows import Row, group_rows
from haloscope.report import components, tables

Measure = Callable[[Sequence[Mapping]], float]  # seconds, of the records of one launch
STATISTIC = (
    "Times: the mean of a launch's repetitions, geometric mean over launches. Ratios: of the same launches, with "
    f"Student's 95 % interval; '{stats.NO_CHOICE}' where it holds 1."
)


def by_launch(row: Row) -> dict[str, Row]:
    """Return a row for each launch of a row."""
    launches = dict.fromkeys(record["launch"]["id"] for record in row.records)
    return {one: group_rows([r for r in row.records if r["launch"]["id"] == one])[0] for one in launches}


def common(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows in each launch that all of them have."""
    alone = [by_launch(row) for row in rows]
    shared = set.intersection(*map(set, alone)) if alone else set()
    return {launch: [found[launch] for found in alone] for launch in sorted(shared)}


def seconds_of(row: Row, measure: Measure = components.step_time) -> dict[str, float]:
    """Return a measure of a row's records by launch."""
    return {launch: measure(one.records) for launch, one in by_launch(row).items()}


def of_component(name: str, statistic: str) -> Measure:
    """Return the measure of a component's seconds per step, by a statistic over ranks."""
    return lambda found: components.component(found, name, statistic)


def mean(row: Row, measure: Measure = components.step_time) -> stats.Estimate:
    """Return the geometric mean of a measure over launches, with its interval; 0 where a launch has none of it, or a
    bound below 0."""
    found = seconds_of(row, measure)
    return stats.mean_over_launches(found) if min(found.values()) > 0 else stats.Estimate(0.0, 0.0, 0.0, len(found))


def ratio(above: Mapping[str, float], below: Mapping[str, float]) -> stats.Estimate | None:
    """Return the geometric mean of a ratio over the launches that both sides have, None where they have none."""
    both = {launch: value / below[launch] for launch, value in above.items() if launch in below}
    return stats.mean_over_launches(both) if both else None


def mean_share(shares: Sequence[float]) -> stats.Estimate:
    """Return the arithmetic mean of a share of each launch, which may be negative, with Student's interval."""
    array = np.asarray(shares, dtype=float)
    value, half = float(array.mean()), stats.student_half_width(array)
    return stats.Estimate(value, value - half, value + half, int(array.size), int(array.size))


def text(estimate: stats.Estimate | None, digits: int = 2) -> str:
    """Return a ratio as `1.20 (1.10 .. 1.31)`, and the verdict where it may be 1; "" for none."""
    if estimate is None:
        return ""
    shown = f"{estimate.value:.{digits}f} ({tables.interval(estimate, f'{{:.{digits}f}}'.format)})"
    unsure = math.isfinite(estimate.high) and stats.verdict_text(estimate, "", "") == stats.NO_CHOICE
    return f"{shown}, {stats.NO_CHOICE}" if unsure else shown
