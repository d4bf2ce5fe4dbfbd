"""Fits of piecewise linear costs to measured times.

Plain least squares follows the largest times and fits small ones badly, so the default divides the error of every
measurement by its time: it minimises the sum of squared *relative* errors. Source: Davis 2017, sections 5.4 and 6.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from haloscope.errors import UsageError
from haloscope.model.segments import Segment

Array = npt.NDArray[np.float64]
LOSSES = ("linear", "soft_l1", "huber", "cauchy")  # scipy's names; all but the first tolerate outliers


def line(
    amounts: npt.ArrayLike, times: npt.ArrayLike, *, relative: bool = True, positive: bool = True, loss: str = "linear"
) -> tuple[float, float]:
    """Return fixed time and time per unit of one straight line.

    amounts (>= 0), times (> 0, seconds): equally long. relative: weigh by 1/time, else plain least squares. positive:
    neither parameter is below 0, and a parameter that the data do not determine (standard error above the value, or a
    single amount) is set to 0. loss: one of LOSSES, with outliers from 10 % (relative) deviation on.
    Raises UsageError for no data, times <= 0, an unknown loss.
    """
    x, y = _checked(amounts, times)
    if loss not in LOSSES:
        raise UsageError(f"'{loss}' is not a loss function; choose one of {', '.join(LOSSES)}")
    weights = 1 / y if relative else np.ones_like(y)
    if len(np.unique(x)) == 1:
        return (0.0, float(np.average(y / x[0], weights=weights**2))) if x[0] > 0 else (float(y.mean()), 0.0)
    parts = np.column_stack((np.ones_like(x), x))
    found = _solve(parts, y, weights, positive, loss)
    if positive and len(x) > 2:
        keep = _determined(parts, y, weights, found)
        if keep.any() and not keep.all():
            found = np.where(keep, 0.0, 0.0)
            found[keep] = _solve(parts[:, keep], y, weights, positive, loss)
    return float(found[0]), float(found[1])


def lines(amounts: npt.ArrayLike, times: npt.ArrayLike, counts: Array, *, positive: bool = True) -> Array:
    """Return the results of `line` for many samples of the same measurements, by relative errors, in one call.

    amounts (>= 0), times (> 0, seconds): n of each. counts: shape (choices, n), multiplicity of each measurement in a
    choice, not all 0. Returns fixed time and time per unit, shape (choices, 2). Raises UsageError as `line` does.
    """
    x, y = _checked(amounts, times)
    unit = max(x.max(), 1e-300)
    parts = np.stack((1 / y, x / (unit * y)))  # of a measured 1: fixed time, time per unit
    (uu, uv), (_, vv) = (parts[:, None] * parts[None]) @ counts.T
    to_u, to_v = parts @ counts.T
    with np.errstate(divide="ignore", invalid="ignore"):  # where there is only one amount; replaced at the end
        alone = np.stack((to_u / uu, to_v / vv))
        found = np.stack((vv * to_u - uv * to_v, uu * to_v - uv * to_u)) / (uu * vv - uv**2)
        if positive:
            first = alone[0] * to_u >= alone[1] * to_v  # the parameter that alone explains more
            found = np.where((found < 0).any(axis=0), np.where([first, ~first], alone, 0.0), found)
            many, rest = counts.sum(axis=1), ((found.T @ parts - 1) ** 2 * counts).sum(axis=1)
            variance = rest / np.maximum(1, many - 2) * np.stack((vv, uu)) / (uu * vv - uv**2)
            keep = np.abs(found) > np.sqrt(variance)
            found = np.where((many > 2) & (keep.sum(axis=0) == 1), np.where(keep, alone, 0.0), found)
    single = (counts @ (x[:, None] == np.unique(x)) > 0).sum(axis=1) == 1
    found = np.where(single, np.where([vv == 0, vv > 0], alone, 0.0), found)
    scaled: Array = found.T / (1, unit)
    return scaled


def _checked(amounts: npt.ArrayLike, times: npt.ArrayLike) -> tuple[Array, Array]:
    x, y = np.asarray(amounts, float), np.asarray(times, float)
    if not len(x) or len(x) != len(y):
        raise UsageError(f"a fit needs the same number of times and amounts, at least one; not {len(y)} and {len(x)}")
    if (y <= 0).any() or (x < 0).any():
        raise UsageError("a fit needs times above 0 and amounts of at least 0; leave the others out")
    return x, y


def _ordered(amounts: npt.ArrayLike, times: npt.ArrayLike) -> tuple[Array, Array]:
    """Return checked amounts and times in rising order of the amounts."""
    x, y = _checked(amounts, times)
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def _solve(parts: Array, y: Array, weights: Array, positive: bool, loss: str) -> Array:
    from scipy import optimize

    # Columns are scaled to the same magnitude: bytes are in the millions, latencies in microseconds.
    scale = np.abs(parts * weights[:, None]).max(axis=0)
    design, wanted = parts * weights[:, None] / scale, y * weights
    if positive:
        found = optimize.nnls(design, wanted)[0]
    else:
        found = np.linalg.lstsq(design, wanted, rcond=None)[0]
    if loss != "linear":
        deviation = 0.1 * np.median(np.abs(wanted))
        bounds = (0 if positive else -np.inf, np.inf)
        found = optimize.least_squares(
            lambda p: design @ p - wanted, found, bounds=bounds, loss=loss, f_scale=deviation
        ).x
    solved: Array = found / scale
    return solved


def _determined(parts: Array, y: Array, weights: Array, found: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the parameters that are larger than their standard error."""
    design = parts * weights[:, None]
    rest = design @ found - y * weights
    variance = rest @ rest / max(1, len(y) - len(found))
    scale = np.abs(design).max(axis=0)
    error = np.sqrt(variance * np.diag(np.linalg.pinv((design / scale).T @ (design / scale)))) / scale
    determined: npt.NDArray[np.bool_] = np.abs(found) > error
    return determined


def pieces(amounts: npt.ArrayLike, times: npt.ArrayLike, breaks: Sequence[float] = (), **how: Any) -> list[Segment]:
    """Fit one line per range between `breaks` (amounts at which a range begins); ranges are [lower, upper).

    how: relative, positive, loss of `line`. The first segment starts at 0, the last has no end; ranges without data are
    merged into the one before. Returns segments. Raises UsageError as `line` does.
    """
    x, y = _ordered(amounts, times)
    inner = [b for b in sorted(set(breaks)) if (x < b).any() and (x >= b).any()]
    places = [0, *np.searchsorted(x, inner, side="left"), len(x)]
    places = list(dict.fromkeys(int(p) for p in places))
    starts = [0.0, *(float(next(b for b in inner if np.searchsorted(x, b) == p)) for p in places[1:-1])]
    ends = [*starts[1:], math.inf]
    return [
        Segment(start, end, *line(x[i:j], y[i:j], **how))
        for start, end, i, j in zip(starts, ends, places[:-1], places[1:], strict=True)
    ]


def breaks_by_rule(amounts: npt.ArrayLike, times: npt.ArrayLike, threshold: float = 0.3, **how: Any) -> list[float]:
    """Return the beginnings of ranges by the rule of the 2017 study.

    In rising order of amounts a line is fitted to the points so far. A next point that deviates by more than
    `threshold` (relative to its measured time) closes the range and begins a new one. Every range but the last has at
    least two points.
    Source: Davis 2017, section 5.4 (30 % there).
    """
    x, y = _ordered(amounts, times)
    found, begin = [], 0
    for i in range(len(x)):
        if i - begin < 2:
            continue
        fixed, slope = line(x[begin:i], y[begin:i], **how)
        if abs(fixed + slope * x[i] - y[i]) > threshold * y[i] and x[i] > x[i - 1]:
            found.append(float(x[i]))
            begin = i
    return found


def find_breaks(amounts: npt.ArrayLike, times: npt.ArrayLike, most: int = 3, least_points: int = 4) -> list[float]:
    """Return the beginnings of ranges that minimise squared relative errors plus a penalty per range (BIC).

    most: most ranges. least_points: fewest measurements per range. Exact by dynamic programming, O(points^2). This
    finds jumps far below 30 %, such as protocol switches of message libraries, which the rule of the 2017 study misses.
    """
    x, y = _ordered(amounts, times)
    n = len(x)
    cost = _costs_of_ranges(x, y, least_points)
    best, choice = cost[0].copy(), []
    scores = [_bic(best[n], n, 1)]
    ways: list[list[float]] = [[]]
    for count in range(2, most + 1):
        through = best[:, None] + cost  # least cost up to i, then one range i..j
        last = np.argmin(through, axis=0)
        best = through[last, np.arange(n + 1)]
        choice.append(last)
        if not math.isfinite(best[n]):
            break
        places, j = [], n
        for step in reversed(choice):
            j = int(step[j])
            places.append(j)
        scores.append(_bic(best[n], n, count))
        ways.append([float(x[p]) for p in reversed(places)])
    return ways[int(np.argmin(scores))]


def _costs_of_ranges(x: Array, y: Array, least_points: int) -> Array:
    """Return for every range of points i..j the least sum of squared relative errors of a line; inf if too short."""
    scaled = x / max(x.max(), 1e-300)
    terms = np.column_stack((1 / y**2, scaled / y**2, scaled**2 / y**2, 1 / y, scaled / y))
    total = np.vstack((np.zeros(5), np.cumsum(terms, axis=0)))
    cost = np.full((len(x) + 1, len(x) + 1), np.inf)
    for i in range(len(x)):
        ends = np.arange(i + least_points, len(x) + 1)
        ends = ends[[e == len(x) or x[e] > x[e - 1] for e in ends]]  # equal amounts stay together
        ends = ends[x[ends - 1] > x[i]]  # one amount alone has no line
        if not len(ends) or (i and x[i] == x[i - 1]):
            continue
        w, wx, wxx, v, vx = (total[ends] - total[i]).T
        det = np.maximum(w * wxx - wx**2, 1e-300)
        a, b = (wxx * v - wx * vx) / det, (w * vx - wx * v) / det
        cost[i, ends] = np.maximum((ends - i) - a * v - b * vx, 0)
    return cost


def _bic(error: float, points: int, ranges: int) -> float:
    # An error below a tenth of a percent is rounding; further splitting explains nothing.
    return points * math.log(error / points + 1e-6) + (3 * ranges - 1) * math.log(points)


def relative_errors(segments: Sequence[Segment], amounts: npt.ArrayLike, times: npt.ArrayLike) -> Array:
    """Return (fitted - measured) / measured for each measurement."""
    from haloscope.model.segments import evaluate

    x, y = _checked(amounts, times)
    errors: Array = (evaluate(segments, x) - y) / y
    return errors
