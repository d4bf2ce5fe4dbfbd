"""Intervals from held-out measurements: split-conformal quantiles of log(measured / predicted), by regime.

For any distribution of the errors, such an interval contains a further case of the same kind with at least the nominal
probability, and with at most 2 / (n + 1) more for n cases. Source: Lei, G'Sell, Rinaldo, Tibshirani, Wasserman 2018.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

NOMINAL = 0.9
ALL = "all"


def quantiles(logs: Sequence[float]) -> tuple[float, float] | None:
    """Return the ends that leave out half of 1 - NOMINAL on each side; None for fewer than the necessary 19 cases.

    logs: of measured over predicted.
    """
    ordered = sorted(logs)
    outside = math.floor((len(ordered) + 1) * (1 - NOMINAL) / 2 + 1e-9)
    return (ordered[outside - 1], ordered[-outside]) if outside >= 1 else None


def by_regime(cases: Iterable[tuple[str, float]]) -> dict[str, dict]:
    """Return residuals in the form of profiles: by regime, for regimes with enough cases, and of all cases.

    cases: regime and log(measured / predicted) of each case.
    """
    groups: dict[str, list[float]] = defaultdict(list)
    for regime, value in cases:
        for name in {ALL, regime or ALL}:
            groups[name].append(value)
    found = {}
    for name, values in groups.items():
        if ends := quantiles(values):
            found[name] = {"count": len(values), "low": ends[0], "high": ends[1]}
    return found
