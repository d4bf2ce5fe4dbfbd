"""Shapes of measured curves over sizes: times that rise with the size, and bandwidths with a plateau.

Each launch counts by its least sample: a sample is a mean over many operations, and other work on the machine only
lengthens it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from haloscope.records import patterns, stats
from haloscope.records.curves import FACTORS, Curve
from haloscope.report import tables
from haloscope.report.microbench import Group

RISES, FALLS, PLATEAU, NO_PLATEAU, UNCLEAR = "rises", "falls", "plateau", "no plateau", "cannot be told"
LEAST_TIME = 0.9  # of a size, over the time of the slowest smaller size, where a curve rises
LEAST_BANDWIDTH = 0.75  # of a size on the plateau, over the best bandwidth
LEAST_SPAN = 8  # largest size of a plateau over its smallest
LEAST_SIZES = 8  # fewer show no shape
DEFINITIONS = (
    f"A time rises if no size takes less than {LEAST_TIME:g} of the time of a smaller one. A plateau is a range of "
    f"sizes, the largest at least {LEAST_SPAN} times the smallest, with at least {LEAST_BANDWIDTH:g} of the best "
    f"bandwidth. Ratios are of the least samples of each launch; where their 95 % intervals allow both verdicts, the "
    f"shape cannot be told."
)


@dataclass(frozen=True)
class Shape:
    """A verdict, and the sizes and numbers behind it."""

    verdict: str
    basis: str


def rise(curve: Curve, key: str) -> Shape:
    """Judge whether a time rises with the size, by the ratio of each size to the slowest smaller one.

    A rise needs the interval of every ratio above the bound; a fall needs one below it, of intervals that hold
    together.
    """
    sizes = curve.sizes(key)
    slowest, ratios = sizes[0], {}
    for size in sizes[1:]:
        ratios[size] = (slowest, stats.ratio_by_launch([(_least(curve, size, key), _least(curve, slowest, key))]))
        slowest = max(slowest, size, key=lambda s: _time(curve, s, key))
    every = {size: stats.mean_over_launches(ratio) for size, (_, ratio) in ratios.items()}
    joint = {size: stats.mean_over_launches(ratio, _joint(len(ratios))) for size, (_, ratio) in ratios.items()}
    deepest = min(joint, key=lambda size: joint[size].high)
    if falls := joint[deepest].high < LEAST_TIME:
        lowest = deepest
    else:
        lowest = min(every, key=lambda size: every[size].low)
    verdict = FALLS if falls else RISES if every[lowest].low >= LEAST_TIME else UNCLEAR
    ends = tables.interval(every[lowest], "{:.2f}".format)
    return Shape(verdict, f"{lowest} B over {ratios[lowest][0]} B: {every[lowest].value:.2f} ({ends})")


def plateau(curve: Curve, key: str) -> Shape:
    """Judge whether a bandwidth has a plateau, by the ratio of the bandwidth of each size to the best one.

    A plateau needs the intervals of all its ratios above the bound; there is none if intervals that hold together
    exclude enough sizes.
    """
    sizes = curve.sizes(key)
    moved = patterns.MEASURES[key].moved
    bandwidths = {size: moved * curve.window(size) * size / _time(curve, size, key) for size in sizes}
    best = max(sizes, key=lambda size: bandwidths[size])
    every = {size: _of_best(curve, key, size, best, stats.CONFIDENCE) for size in sizes}
    joint = {size: _of_best(curve, key, size, best, _joint(len(sizes) - 1)) for size in sizes}
    certain = _longest(sizes, lambda size: every[size].low >= LEAST_BANDWIDTH)
    if _is_long(certain):
        height = tables.number(median(bandwidths[size] for size in certain) * FACTORS["GB/s"])
        return Shape(PLATEAU, f"{height} GB/s per pair from {certain[0]} to {certain[-1]} B")
    possible = _longest(sizes, lambda size: joint[size].high >= LEAST_BANDWIDTH)
    height = tables.number(bandwidths[best] * FACTORS["GB/s"])
    return Shape(UNCLEAR if _is_long(possible) else NO_PLATEAU, f"best {height} GB/s per pair at {best} B")


def _least(curve: Curve, size: int, key: str) -> dict[str, list[float]]:
    """Return the least sample in seconds by launch."""
    return {launch: [min(samples)] for launch, samples in curve.samples(size, key).items()}


def _time(curve: Curve, size: int, key: str) -> float:
    return stats.middle(list(_least(curve, size, key).values()))


def _of_best(curve: Curve, key: str, size: int, best: int, confidence: float) -> stats.Estimate:
    """Return the bandwidth of a size over the best one."""
    times = stats.ratio_by_launch([(_least(curve, best, key), _least(curve, size, key))])
    ratio = stats.mean_over_launches(times, confidence)
    factor = curve.window(size) * size / (curve.window(best) * best)
    return dataclasses.replace(ratio, value=ratio.value * factor, low=ratio.low * factor, high=ratio.high * factor)


def _longest(sizes: Sequence[int], fits: Callable[[int], bool]) -> list[int]:
    """Return the run of consecutive sizes that fit with the largest span."""
    runs = [list(run) for fitting, run in groupby(sizes, key=fits) if fitting]
    return max(runs, key=lambda run: run[-1] / run[0], default=[])


def _is_long(run: Sequence[int]) -> bool:
    return bool(run) and run[-1] >= LEAST_SPAN * run[0]


def _joint(count: int) -> float:
    """Return the confidence of each of some intervals that hold together at 95 %."""
    return 1 - (1 - stats.CONFIDENCE) / count


def shapes_of(curve: Curve) -> dict[str, Shape]:
    """Return the shape of each measure of messages or one-sided operations; none of curves with few sizes."""
    if curve.kind not in (patterns.PAIRS, patterns.ONESIDED, patterns.RING):
        return {}
    keys = [key for key in curve.measures() if len(curve.sizes(key)) >= LEAST_SIZES]
    return {key: plateau(curve, key) if patterns.MEASURES[key].moved else rise(curve, key) for key in keys}


def table(curves: Sequence[Curve]) -> str:
    """Return the table of all shapes, "" without any."""
    lines = [
        [str(Group.of(curve)), curve.transport or "a flush", patterns.MEASURES[key].words, shape.verdict, shape.basis]
        for curve in curves
        for key, shape in shapes_of(curve).items()
    ]
    return tables.markdown(lines, ["ranks", "completed by", "measure", "shape", "basis"]) if lines else ""
