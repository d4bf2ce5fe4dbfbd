"""Piecewise linear costs: a fixed time plus a time per unit (byte, cell) on each of several ranges [start, end); for
bytes in rows also a time per row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from haloscope.errors import UsageError

# JSON names of start, end, fixed time and time per unit, by unit.
KEYS = {
    "bytes": ("from_bytes", "to_bytes", "latency_s", "per_byte_s"),
    "cells": ("from_cells", "to_cells", "fixed_s", "per_cell_s"),
}
PER_ROW = "per_row_s"


def parameters(unit: str) -> dict[str, str]:
    """Return the JSON name of each parameter of a segment."""
    _, _, fixed, slope = KEYS[unit]
    return {"fixed": fixed, "slope": slope, "per_row": PER_ROW}


@dataclass(frozen=True)
class Segment:
    """Cost `fixed` + `slope` * amount + `per_row` * rows for start <= amount < end, in seconds; `interval` holds bounds
    of these parameters by name."""

    start: float
    end: float
    fixed: float
    slope: float
    interval: Mapping = field(default_factory=dict, compare=False)
    per_row: float = 0.0


def from_json(rows: Sequence[Mapping], unit: str = "bytes") -> list[Segment]:
    """Read segments in the form of profiles.

    rows: objects with the keys of `unit` ("bytes" or "cells"). Returns segments in rising order.
    Raises UsageError when they overlap or leave a gap.
    """
    start, end, fixed, slope = KEYS[unit]
    named = {name: parameter for parameter, name in parameters(unit).items()}
    made = []
    for r in sorted(rows, key=lambda r: r[start]):
        interval = {named[name]: tuple(ends) for name, ends in r.get("interval", {}).items()}
        last = math.inf if r[end] is None else r[end]
        made.append(Segment(r[start], last, r[fixed], r[slope], interval, r.get(PER_ROW, 0.0)))
    for left, right in itertools.pairwise(made):
        if left.end != right.start:
            raise UsageError(
                f"segments must follow one another: one ends at {left.end:g} {unit}, the next starts at "
                f"{right.start:g}; correct {end} or {start}"
            )
    return made


def to_json(segments: Sequence[Segment], unit: str = "bytes") -> list[dict]:
    """Return segments in the form of profiles; the inverse of `from_json`."""
    start, end, fixed, slope = KEYS[unit]
    names = parameters(unit)
    return [
        {start: s.start, end: None if math.isinf(s.end) else s.end, fixed: s.fixed, slope: s.slope}
        | ({PER_ROW: s.per_row} if s.per_row else {})
        | ({"interval": {names[name]: list(ends) for name, ends in s.interval.items()}} if s.interval else {})
        for s in segments
    ]


def segment_at(segments: Sequence[Segment], amount: float) -> Segment:
    """Return the segment whose range holds `amount` (>= 0); the first below all ranges, the last above them."""
    return next((s for s in reversed(segments) if s.start <= amount), segments[0])


@overload
def evaluate(segments: Sequence[Segment], amount: float, rows: float = 0.0) -> float: ...
@overload
def evaluate(segments: Sequence[Segment], amount: np.ndarray, rows: np.ndarray | float = 0.0) -> np.ndarray: ...
def evaluate(
    segments: Sequence[Segment], amount: float | np.ndarray, rows: float | np.ndarray = 0.0
) -> float | np.ndarray:
    """Return the cost in seconds of `amount` units in `rows` rows; both are numbers >= 0, or arrays of equal length.

    The first segment continues below its range, the last above. An amount of 0 costs the fixed time: the caller must
    omit messages that do not exist. Source: Davis 2017, sections 5.4 and 6.8 (table 5.9).
    """
    if not np.ndim(amount):  # by far the most frequent case, and much faster without arrays
        here = segment_at(segments, float(amount))
        return float(here.fixed + here.slope * amount + here.per_row * rows)
    place = np.searchsorted([s.start for s in segments], amount, side="right") - 1
    place = np.clip(place, 0, None)
    costs = np.array([(s.fixed, s.slope, s.per_row) for s in segments])[place]
    return costs[..., 0] + costs[..., 1] * amount + costs[..., 2] * rows


def by_count(table: Mapping[str, Sequence[dict]], unit: str = "bytes") -> dict[int, list[Segment]]:
    """Return a profile's segments by count (threads, active cores, ranks of a device); counts are texts in JSON."""
    return {int(count): from_json(rows, unit) for count, rows in table.items()}


def evaluate_at(table: Mapping[int, Sequence[Segment]], count: float, amount: float) -> float:
    """Return the cost for a count (threads, active cores) from segments of several counts.

    Costs are interpolated linearly between two counts; beyond them the closest count applies.
    """
    counts = sorted(table)
    return float(np.interp(count, counts, [evaluate(table[c], amount) for c in counts]))
