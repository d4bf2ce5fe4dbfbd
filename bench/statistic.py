"""Figures that are statistics of many values: the bootstrap interval, and the line that the aggregator reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from haloscope.records import stats


def line(figure: str, case: str, estimate: stats.Estimate, direction: str, bar: float, notes: str) -> None:
    """Print one judged case; the estimate's samples count the values of its statistic."""
    found = {
        "figure": figure,
        "case": case,
        "unit": "ratio",
        "value": estimate.value,
        "direction": direction,
        "bar": bar,
    }
    found |= {"interval": [estimate.low, estimate.high], "pairs": estimate.samples, "launches": estimate.launches}
    print(json.dumps(found | {"notes": notes}), flush=True)


def resampled(values: Sequence[float], statistic: Callable, launches: int) -> stats.Estimate:
    """Return a statistic of some values, each measured in `launches` launches, with its 95 % bootstrap interval."""
    from scipy.stats import bootstrap

    values = np.asarray(values)
    if len(values) == 1:  # nothing to resample
        return stats.Estimate(*[float(statistic(values))] * 3, 1, launches)
    ends = bootstrap(
        (values,), statistic, vectorized=False, n_resamples=999, rng=1, method="percentile"
    ).confidence_interval
    return stats.Estimate(float(statistic(values)), float(ends.low), float(ends.high), len(values), launches)
