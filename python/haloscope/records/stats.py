"""Medians with intervals: bootstrap over launches, paired ratios, outliers flagged and never dropped."""

from __future__ import annotations

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


def _resampled_medians(launches: Sequence[np.ndarray], rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Medians of `resamples` bootstrap samples: launches drawn first, then repetitions within each drawn launch.

    Launches are the outer sample: repetitions of one launch share placement and address layout and are not independent.
    """
    count = len(launches)
    medians = np.empty((resamples, count))
    for column, drawn in enumerate(rng.integers(count, size=(resamples, count)).T):
        for launch in range(count):
            rows = np.flatnonzero(drawn == launch)
            values = launches[launch]
            picks = rng.integers(len(values), size=(len(rows), len(values)))
            medians[rows, column] = np.median(values[picks], axis=1)
    return np.median(medians, axis=1)


def median_over_launches(launches: Sequence[Sequence[float]], seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Median over launches of each launch's median, with a 95 % interval by hierarchical bootstrap.

    launches: per launch its repetitions, at least one each. Cost: resamples x repetitions draws.
    """
    arrays = [np.asarray(launch, dtype=float) for launch in launches]
    if not arrays or any(a.size == 0 for a in arrays):
        raise ValueError("a median needs at least one launch, and each launch at least one repetition")
    value = float(np.median([np.median(a) for a in arrays]))
    medians = _resampled_medians(arrays, np.random.default_rng(seed), resamples)
    low, high = _interval(medians)
    return Estimate(value, min(low, value), max(high, value), sum(a.size for a in arrays), len(arrays))


def _interval(values: np.ndarray, confidence: float = CONFIDENCE) -> tuple[float, float]:
    tail = 50 * (1 - confidence)
    low, high = np.percentile(values, [tail, 100 - tail])
    return float(low), float(high)


def ratio_of_launches(
    a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]], seed: int = 0, confidence: float = CONFIDENCE
) -> Estimate:
    """Median of a/b with its interval, of 95 % unless told otherwise; a and b hold repetitions by launch.

    Launches that both have are paired, so that what a launch did to both cancels. Without a common launch, the two
    are resampled independently.
    """
    rng = np.random.default_rng(seed)
    common = [key for key in a if key in b]
    if not common:
        return _independent_ratio(list(a.values()), list(b.values()), rng, confidence)
    pairs = [(np.asarray(a[k], dtype=float), np.asarray(b[k], dtype=float)) for k in common]
    value = float(np.median([np.median(x) / np.median(y) for x, y in pairs]))
    ratios = np.empty((RESAMPLES, len(pairs)))
    for column, drawn in enumerate(rng.integers(len(pairs), size=(RESAMPLES, len(pairs))).T):
        for launch, (x, y) in enumerate(pairs):
            rows = np.flatnonzero(drawn == launch)
            top = np.median(x[rng.integers(x.size, size=(len(rows), x.size))], axis=1)
            bottom = np.median(y[rng.integers(y.size, size=(len(rows), y.size))], axis=1)
            ratios[rows, column] = top / bottom
    low, high = _interval(np.median(ratios, axis=1), confidence)
    return Estimate(value, min(low, value), max(high, value), sum(x.size for x, _ in pairs), len(pairs))


def _independent_ratio(a: list, b: list, rng: np.random.Generator, confidence: float) -> Estimate:
    a, b = [np.asarray(x, dtype=float) for x in a], [np.asarray(x, dtype=float) for x in b]
    value = float(np.median([np.median(x) for x in a]) / np.median([np.median(x) for x in b]))
    low, high = _interval(_resampled_medians(a, rng, RESAMPLES) / _resampled_medians(b, rng, RESAMPLES), confidence)
    return Estimate(value, min(low, value), max(high, value), sum(x.size for x in a + b), min(len(a), len(b)))


def median_of(values: Sequence[float]) -> Estimate:
    """Median of independent samples; the 95 % interval comes from order statistics and assumes no shape.

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

    They are to be shown, not removed. The scale is the median absolute deviation x 1.4826, at least 1 % of the median,
    so that repetitions which agree to a fraction of a percent do not flag each other.
    """
    array = np.asarray(values, dtype=float)
    centre = np.median(array)
    scale = max(1.4826 * float(np.median(np.abs(array - centre))), 0.01 * abs(float(centre)))
    return [int(i) for i in np.flatnonzero(np.abs(array - centre) > OUTLYING * scale)] if scale else []


NO_CHOICE = "cannot tell apart"


def verdict_text(ratio: Estimate, above: str, below: str, least_launches: int = 1) -> str:
    """Return the word for a ratio `above` or `below` 1, or NO_CHOICE where its interval holds 1 or launches are few."""
    if ratio.low <= 1 <= ratio.high or ratio.launches < least_launches:
        return NO_CHOICE
    return above if ratio.value > 1 else below


def verdict(ratio: Estimate) -> str:
    """Return a ratio of times a/b in words: "A is 1.20 x faster", or NO_CHOICE."""
    if verdict_text(ratio, "B", "A") == NO_CHOICE:
        return NO_CHOICE
    if ratio.value > 1:
        return f"B is {ratio.value:.3g} x faster"
    return f"A is {1 / ratio.value:.3g} x faster"
