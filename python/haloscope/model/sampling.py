"""How far a prediction moves when the parameters of a profile move within their intervals."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Iterator

import numpy as np

from haloscope.model.profile import Profile

SIGMAS = 2 * 1.96  # width of a parameter's 95 % interval in standard deviations
INTERVAL = (5.0, 95.0)  # percentiles of what is returned
TAIL = statistics.NormalDist().inv_cdf(INTERVAL[1] / 100)  # standard deviations on either side that they are apart


def spread(
    profile: Profile, time_of: Callable[[Profile], float], samples: int, seed: int = 0
) -> tuple[float, float] | None:
    """Return the ends of the 90 % interval of a time over its value, such as (0.95, 1.08).

    profile: parameters with an "interval" beside them are drawn independently from normal distributions, and stay >= 0
    where they are; others stay fixed. time_of: the time that a profile gives. samples: draws, 0 = none.
    Returns None without samples or without intervals.
    """
    if not samples:
        return None
    data = copy.deepcopy(profile.data)
    uncertain = [
        (parameters, name, parameters[name], high - low)
        for parameters in _uncertain(data)
        for name, (low, high) in parameters["interval"].items()
    ]
    if not uncertain:
        return None
    usual = time_of(profile)
    draws = np.random.default_rng(seed).normal(size=(samples, len(uncertain))).tolist()
    times = []
    for drawn in draws:  # all in one copy of the profile: everything derived from it belongs to one draw's Profile
        for (parameters, name, value, width), away in zip(uncertain, drawn, strict=True):
            moved = value + away * width / SIGMAS
            parameters[name] = max(0.0, moved) if value >= 0 else moved
        times.append(time_of(Profile(data)))
    low, high = np.percentile(times, INTERVAL) / usual
    return min(1.0, float(low)), max(1.0, float(high))


def _uncertain(node: object) -> Iterator[dict]:
    """Yield every object of a profile that has an interval of some of its own parameters."""
    if isinstance(node, dict):
        interval = node.get("interval")
        if isinstance(interval, dict) and interval and set(interval) <= set(node):
            yield node
        for key, value in node.items():
            if key != "interval":
                yield from _uncertain(value)
    elif isinstance(node, list):
        for value in node:
            yield from _uncertain(value)
