"""Sweeps whose measured time deviates from the line through smaller blocks: candidates for work on the kernel.

A sweep's time is linear in its points until conditions change, for example when a cache no longer holds the data that
the sweep reads again.
Source: Davis 2017, sections 5.4 and 6.1 (kernel Madvmz1 above 100^3 cells).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope.model import fit
from haloscope.records.rows import Row
from haloscope.records.text import cell

THRESHOLD = 0.3  # relative deviation of a time from the line
FEWEST = 3  # sizes; two define a line, a third can deviate from it
SWEEPS = ("compute", "inner", "outer")  # phases
AXES = ("app", "form", "real", "ranks", "threads", "schedule", "depth", "substeps", "process_grid", "device", "set")


@dataclass(frozen=True)
class Anomaly:
    """A kernel that leaves its line: the largest amount on it, the first off it, and its time over the line's time."""

    last_on: float
    first_off: float
    ratio: float


def leaving(
    amounts: Sequence[float] | np.ndarray, times: Sequence[float] | np.ndarray, threshold: float = THRESHOLD
) -> Anomaly | None:
    """Return the first deviation of measured times from the line through times of smaller amounts; None without any.

    amounts (> 0), times (> 0, seconds): equally long. threshold: least relative deviation that counts.
    Raises UsageError as `fit.line` does. Source: section 5.4, the 30 % rule.
    """
    breaks = fit.breaks_by_rule(amounts, times, threshold, positive=False)
    if not breaks:
        return None
    ordered = sorted(zip(amounts, times, strict=True))
    below = [point for point in ordered if point[0] < breaks[0]]
    first, seconds = ordered[len(below)]
    fixed, slope = fit.line(*zip(*below, strict=True), positive=False)
    return Anomaly(below[-1][0], first, seconds / (fixed + slope * first))


def points(table: Sequence[Row]) -> dict[str, Mapping[float, float]]:
    """Return seconds of the sweeps of a step by points swept, both per rank, for each kernel measured at FEWEST sizes
    or more.

    Kernels are distinguished by AXES; of several rows at one size the fastest counts. Rows without phases or counts,
    and rows with more threads than cores, are left out.
    """
    found: dict[tuple, dict[float, float]] = defaultdict(dict)
    for row in table:
        swept = row.records[0].get("counts", {}).get("swept_points", 0)
        seconds = sum(row.phase(name, "mean") for name in SWEEPS)
        if swept and seconds > 0 and not row.oversubscribed:
            key = tuple((axis, cell(row.request[axis])) for axis in AXES if row.request.get(axis))
            amount = swept / row.request["ranks"] / row.request["steps"]
            found[key][amount] = min(seconds, found[key].get(amount, seconds))
    kept = {key: by_size for key, by_size in found.items() if len(by_size) >= FEWEST}
    differ = {pair[0] for key in kept for pair in key if not all(pair in other for other in kept)}
    differ |= {"app", "form", "real"}
    return {_name([pair for pair in key if pair[0] in differ]): by_size for key, by_size in kept.items()}


def _name(key: Sequence[tuple[str, str]]) -> str:
    """Return the parts of a request as words; numbers follow the name of their axis."""
    return ", ".join(f"{axis.replace('_', ' ')} {value}" if value[0].isdigit() else value for axis, value in key)
