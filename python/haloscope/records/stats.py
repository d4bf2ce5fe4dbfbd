"""Medians with intervals: bootstrap over launches, paired ratios, outliers flagged and never dropped."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95
OUTLYING = 5.0


@dataclass(frozen=True)
class Estimate:
    """A median with the ends of its 95 % interval and the number of samples behind it."""

    value: float
    low: float
    high: float
    samples: int
    launches: int = 1


def _resampled(
    launches: Sequence[Sequence[np.ndarray]], rng: np.random.Generator, resamples: int = RESAMPLES
) -> np.ndarray:
    """Return the medians of `resamples` bootstrap samples: launches drawn first, then repetitions within each of them.

    launches: the repetitions of each, then any repetitions whose median divides the first median. Launches are the
    outer sample: repetitions of one launch share placement and address layout and are not independent.
    """
    count = len(launches)
    drawn = rng.integers(count, size=(resamples, count)).T
    found = np.empty(drawn.shape)
    for launch, arrays in enumerate(launches):
        places = drawn == launch
        many = np.count_nonzero(places)
        medians = (np.median(v[rng.integers(v.size, size=(many, v.size))], axis=1) for v in arrays)
        found[places] = functools.reduce(np.divide, medians)
    return np.median(found, axis=0)


def middle(launches: Sequence[Sequence[float] | np.ndarray]) -> float:
    """Return the median over launches of each launch's median, without an interval."""
    return float(np.median([np.median(launch) for launch in launches]))


def median_over_launches(launches: Sequence[Sequence[float]], seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Return the median over launches of each launch's median, with a 95 % interval by hierarchical bootstrap.

    launches: per launch its repetitions, at least one each. Cost: resamples x repetitions draws.
    """
    arrays = [np.asarray(launch, dtype=float) for launch in launches]
    if not arrays or any(a.size == 0 for a in arrays):
        raise ValueError("a median needs at least one launch, and each launch at least one repetition")
    value = middle(arrays)
    medians = _resampled([[a] for a in arrays], np.random.default_rng(seed), resamples)
    return _estimate(value, medians, arrays, len(arrays))


def _estimate(
    value: float, resampled: np.ndarray, samples: Sequence[np.ndarray], launches: int, confidence: float = CONFIDENCE
) -> Estimate:
    """Return a value with the interval of its bootstrap samples, which includes it."""
    tail = 50 * (1 - confidence)
    low, high = map(float, np.percentile(resampled, [tail, 100 - tail]))
    return Estimate(value, min(low, value), max(high, value), sum(a.size for a in samples), launches)


def ratio_of_launches(
    a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]], confidence: float = CONFIDENCE
) -> Estimate:
    """Return the median of a/b with its interval; a and b hold repetitions by launch.

    Launches that both have are paired, so that effects of a launch on both cancel. Without a common launch, the two are
    resampled independently.
    """
    rng, value = np.random.default_rng(0), middle_ratio(a, b)
    if not (common := [key for key in a if key in b]):
        tops, bottoms = ([np.asarray(x, dtype=float) for x in side.values()] for side in (a, b))
        top, bottom = (_resampled([[x] for x in arrays], rng) for arrays in (tops, bottoms))
        return _estimate(value, top / bottom, tops + bottoms, min(len(a), len(b)), confidence)
    pairs = [(np.asarray(a[k], dtype=float), np.asarray(b[k], dtype=float)) for k in common]
    return _estimate(value, _resampled(pairs, rng), [x for x, _ in pairs], len(pairs), confidence)


def middle_ratio(a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]) -> float:
    """Return the ratio a/b of `ratio_of_launches` without its interval, for which the bootstrap takes time."""
    if common := [key for key in a if key in b]:
        return float(np.median([np.median(a[key]) / np.median(b[key]) for key in common]))
    return middle(list(a.values())) / middle(list(b.values()))


def ratio_by_launch(
    cases: Sequence[tuple[Mapping[str, Sequence[float]], Mapping[str, Sequence[float]]]],
) -> dict[str, float]:
    """Return the geometric mean over cases of a/b in each launch that all of them have; a and b hold repetitions by
    launch.
    """
    launches = [key for key in cases[0][0] if all(key in side for case in cases for side in case)]
    return {key: statistics.geometric_mean(np.median(a[key]) / np.median(b[key]) for a, b in cases) for key in launches}


def mean_over_launches(values: Mapping[str, float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the geometric mean of a positive number per launch, with Student's interval of its logarithm.

    One launch has no interval: its ends are 0 and infinity. Unlike the bootstrap, this interval is wide enough for two
    or three launches.
    """
    if not values:
        raise ValueError("a mean over launches needs at least one launch")
    logs = np.log(list(values.values()))
    value, half = float(np.exp(logs.mean())), student_half_width(logs, confidence)
    with np.errstate(over="ignore"):  # two launches may have no upper end that a number can express
        low, high = value * np.exp([-half, half])
    return Estimate(value, float(low), float(high), int(logs.size), int(logs.size))


def student_half_width(values: np.ndarray, confidence: float = CONFIDENCE) -> float:
    """Return half the width of Student's interval of a mean of one number per launch; infinity for one launch."""
    from scipy.special import stdtrit

    if values.size == 1:
        return math.inf
    return float(stdtrit(values.size - 1, 0.5 + confidence / 2) * values.std(ddof=1) / math.sqrt(values.size))


def median_of(values: Sequence[float]) -> Estimate:
    """Return the median of independent samples; the 95 % interval comes from order statistics and assumes no shape.

    With fewer than 6 samples no 95 % interval of order statistics exists; then it is the whole range.
    """
    from scipy.stats import quantile_test

    array = np.asarray(values, dtype=float)
    if array.size == 0:
        raise ValueError("a median needs at least one sample")
    ends = quantile_test(array, q=1, p=0.5).confidence_interval(confidence_level=CONFIDENCE)
    low = ends.low if np.isfinite(ends.low) else array.min()
    high = ends.high if np.isfinite(ends.high) else array.max()
    return Estimate(float(np.median(array)), float(low), float(high), int(array.size))


def outliers(values: Sequence[float]) -> list[int]:
    """Return the positions of values further than OUTLYING robust standard deviations above or below the median.

    They must be shown, not removed. The scale is the median absolute deviation x 1.4826, at least 1 % of the median,
    so that repetitions which agree to a fraction of a percent do not flag each other.
    """
    array = np.asarray(values, dtype=float)
    centre = np.median(array)
    scale = max(1.4826 * float(np.median(np.abs(array - centre))), 0.01 * abs(float(centre)))
    return [int(i) for i in np.flatnonzero(np.abs(array - centre) > OUTLYING * scale)] if scale else []


NO_CHOICE = "cannot tell apart"


def verdict_text(ratio: Estimate, above: str, below: str, least_launches: int = 1) -> str:
    """Return the word for a ratio `above` or `below` 1, or NO_CHOICE if its interval holds 1 or launches are few."""
    if ratio.low <= 1 <= ratio.high or ratio.launches < least_launches:
        return NO_CHOICE
    return above if ratio.value > 1 else below


def verdict(ratio: Estimate) -> str:
    """Return a ratio of times a/b as text: "A is 1.20 x faster", or NO_CHOICE."""
    if verdict_text(ratio, "B", "A") == NO_CHOICE:
        return NO_CHOICE
    if ratio.value > 1:
        return f"B is {ratio.value:.3g} x faster"
    return f"A is {1 / ratio.value:.3g} x faster"
