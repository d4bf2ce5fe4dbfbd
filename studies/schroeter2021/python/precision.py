"""Precision finder of poisson2d: the residuals of sequential iterations, by sine transforms instead of iterating.

The change of an iteration is a linear function of the change before. In Jacobi it is the mean of four neighbours, which
multiplies each sine mode by a factor, so that a transform there and one back cover any number of iterations.
Gauss-Seidel is the same in another order: a point of diagonal d in iteration k, at time d + 2 k, is the mean of its
neighbours at the time before. Once its sweeps have reached all diagonals, the same factors apply to each unit of time.

For function 1 the largest change is at the corner where the borders are 1 and the old interior is 0, and the rest of
the grid is still zero there: a corner of some hundred lines gives the residual of a grid of any size (Schroeter 2021,
5.2).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np

from haloscope.errors import UsageError, unknown_name

METHODS = ("jacobi", "gauss-seidel")
REACH = 8  # lines of the corner per square root of the iterations: what lies beyond changes none of seven digits


def lines(interlines: int) -> int:
    """Return the lines (and columns) of the grid, borders included: 8 I + 9."""
    return 8 * interlines + 9


@functools.cache
def residuals(method: str, interlines: int, iteration: int, function: int = 1) -> tuple[float, float]:
    """Return the residuals of the iteration before and of an iteration, counted from 1, right to seven digits.

    The residual before the first iteration is infinite. Raises UsageError for an unknown method. Cost: Gauss-Seidel
    takes four times as many steps as the corner has lines, Jacobi two transforms.
    """
    if method not in METHODS:
        raise UsageError(unknown_name("method of poisson2d", method, METHODS))
    u, source = _start(interlines, iteration, function)
    found = _jacobi(u, source, iteration) if method == "jacobi" else _gauss_seidel(u, source, iteration)
    return (found[0] if iteration > 1 else math.inf, found[1])


def _start(interlines: int, iteration: int, function: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the last lines and columns of the grid that an iteration depends on, and the equation's term there."""
    intervals = lines(interlines) - 1
    count = intervals if function == 2 else min(intervals, int(REACH * math.sqrt(iteration)) + 50)
    u = np.zeros((count + 1, count + 1))
    along = np.arange(intervals - count, intervals + 1) / intervals
    if function == 2:
        wave = np.sin(np.pi * along)
        return u, 0.5 * np.pi**2 / intervals**2 * np.outer(wave, wave)[1:-1, 1:-1]
    u[-1, :] = u[:, -1] = along
    if count == intervals:
        u[0, :] = u[:, 0] = along[::-1]
    return u, np.zeros((count - 1, count - 1))


def _mean(u: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return the mean of the four neighbours of each inner point, in `out` where there is one."""
    mean: np.ndarray = np.add(u[:-2, 1:-1], u[2:, 1:-1], out=out)
    mean += u[1:-1, :-2]
    mean += u[1:-1, 2:]
    mean *= 0.25
    return mean


def _later(change: np.ndarray, times: int) -> np.ndarray:
    """Return the change after each point was replaced by the mean of its neighbours some times; the border is zero."""
    from scipy.fft import dstn, idstn

    waves = np.cos(np.pi * np.arange(1, change.shape[0] + 1) / (change.shape[0] + 1))
    factors = 0.5 * (waves[:, None] + waves[None, :])
    later: np.ndarray = idstn(dstn(change, type=1) * factors**times, type=1)
    return later


def _jacobi(u: np.ndarray, source: np.ndarray, iteration: int) -> tuple[float, float]:
    first = _mean(u) + source - u[1:-1, 1:-1]
    before, last = (_later(first, max(times, 0)) for times in (iteration - 2, iteration - 1))
    return float(np.abs(before).max()), float(np.abs(last).max())


def _gauss_seidel(u: np.ndarray, source: np.ndarray, iteration: int) -> tuple[float, float]:
    side, begin, found = source.shape[0], 2 * (iteration - 2), [0.0, 0.0]
    for time, change in _sweeps(u, source, begin, begin + 2 * side + 1):
        for number in range(2):
            diagonal = time - begin - 2 * number
            if 0 <= diagonal <= 2 * side - 2:
                points = np.fliplr(change).diagonal(side - 1 - diagonal)
                found[number] = max(found[number], float(np.abs(points).max()))
    return found[0], found[1]


def _sweeps(u: np.ndarray, source: np.ndarray, begin: int, end: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the times from `begin` to before `end`, and earlier ones, with the changes of the points that move then."""
    side, inner, change = source.shape[0], u[1:-1, 1:-1], np.zeros_like(source)
    diagonal = np.add.outer(np.arange(side), np.arange(side))
    reached = 2 * side  # all diagonals
    turns, moved = [diagonal % 2 == parity for parity in range(2)], np.empty(diagonal.shape, dtype=bool)
    for time in range(end if begin < reached else reached):
        near = np.s_[: time + 1, : time + 1]  # no other point moves yet
        np.less_equal(diagonal[near], time, out=moved[near])
        moved[near] &= turns[time % 2][near]
        part = _mean(u[: time + 3, : time + 3], out=change[near])
        part += source[near]
        part -= inner[near]
        part *= moved[near]
        inner[near] += part
        yield time, change
    if begin < reached:
        return
    padded = np.pad(_later(change, begin - reached + 1), 1)
    spare = np.zeros_like(padded)
    for time in range(begin, end):
        yield time, padded[1:-1, 1:-1]
        first = max(0, time - begin - 2 - side)  # later diagonals depend on the lines and columns from here on
        _mean(padded[first:, first:], out=spare[first + 1 : -1, first + 1 : -1])
        padded, spare = spare, padded


def target(method: str, interlines: int, iterations: int) -> float:
    """Return a precision that the sequential program reaches in exactly `iterations` iterations (two or more).

    It lies halfway, by factors, between the residuals of the last two of them.
    """
    return math.sqrt(math.prod(residuals(method, interlines, iterations)))
