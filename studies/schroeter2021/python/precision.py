"""Precision finder of poisson2d: the residual that a sequential run reaches in an iteration, without the whole grid.

For function 1 the largest change is at the corner where the borders are 1 and the old interior is 0, and the rest of
the grid is still zero there: a corner of some hundred lines gives the residual of a grid of any size (Schroeter 2021,
5.2).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from haloscope.errors import UsageError, unknown_name

METHODS = ("jacobi", "gauss-seidel")


def lines(interlines: int) -> int:
    """Return the lines (and columns) of the grid, borders included: 8 I + 9."""
    return 8 * interlines + 9


@functools.cache
def residuals(method: str, interlines: int, iterations: int) -> tuple[float, ...]:
    """Return the residuals of iterations 1 to `iterations` for function 1, right to seven digits.

    Raises UsageError for an unknown method. Cost: iterations x (20 sqrt(iterations))^2 points, numpy.
    """
    if method not in METHODS:
        raise UsageError(unknown_name("method of poisson2d", method, METHODS))
    intervals = lines(interlines) - 1
    region = min(intervals, int(20 * math.sqrt(iterations)) + 50)
    # u[a, b] is the point a lines and b columns before the last ones; the far sides stay at their start value
    whole = region == intervals
    u = np.zeros((region + 1, region + 1))
    along = 1 - np.arange(region + 1) / intervals
    u[0, :] = u[:, 0] = along
    if whole:
        u[-1, :] = u[:, -1] = along[::-1]
    step = _jacobi if method == "jacobi" else _gauss_seidel
    return tuple(step(u) for _ in range(iterations))


def _jacobi(u: np.ndarray) -> float:
    new = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    change = float(np.abs(new - u[1:-1, 1:-1]).max())
    u[1:-1, 1:-1] = new
    return change


def _gauss_seidel(u: np.ndarray) -> float:
    """Sweep diagonal by diagonal, in the order of the row-major sweep, which starts at the far corner."""
    size, change = u.shape[0] - 2, 0.0
    flat, width = u.reshape(-1), u.shape[1]
    for diagonal in range(2 * size, 1, -1):
        first, last = max(1, diagonal - size), min(size, diagonal - 1)
        at = slice(first * width + diagonal - first, last * width + diagonal - last + 1, width - 1)
        here = np.arange(at.start, at.stop, width - 1)
        new = 0.25 * (flat[here - 1] + flat[here + 1] + flat[here - width] + flat[here + width])
        change = max(change, float(np.abs(new - flat[here]).max()))
        flat[here] = new
    return change


def target(method: str, interlines: int, iterations: int) -> float:
    """Return a precision that the sequential program reaches in exactly `iterations` iterations (two or more).

    It lies halfway, by factors, between the residuals of the last two of them.
    """
    found = residuals(method, interlines, iterations)
    return math.sqrt(found[-2] * found[-1])
