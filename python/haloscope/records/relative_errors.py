"""Relative errors of groups of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Errors:
    """Relative errors of one group: the median with its sign, and median, 90th percentile and largest without."""

    group: str
    count: int
    signed: float
    median: float
    p90: float
    worst: float


def group_errors(group: str, values: Sequence[float]) -> Errors:
    """Return the figures of some relative errors, at least one."""
    size = np.abs(values)
    return Errors(
        group, len(size), *map(float, (np.median(values), np.median(size), np.percentile(size, 90), size.max()))
    )
