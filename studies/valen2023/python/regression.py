"""Non-negative least squares on relative errors: the shares of named features in a measured time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from haloscope.errors import UsageError

Features = Mapping[str, np.ndarray]  # per name one number >= 0 per row
ROUNDING = 1e-18  # squared errors below this are rounding: all such fits are equal
BREAK_GAIN = 0.02  # a further break must lower the squared error by this fraction: equal fits keep the first
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Coefficient:
    """Seconds per unit of a feature, with the ends of its 95 % interval if one was requested (else NaN)."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def identified(self) -> bool:
        """False when the data do not need the feature: the coefficient is 0, or its interval reaches 0."""
        return self.value > 0 and not self.low <= 0


@dataclass(frozen=True)
class Fit:
    """A measured quantity as a sum of coefficient x feature, all coefficients >= 0."""

    coefficients: Mapping[str, Coefficient]
    rows: int

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Names of the features whose coefficients are not facts about the machine."""
        return tuple(name for name, c in self.coefficients.items() if not c.identified)

    def predict(self, features: Features, only: Sequence[str] = ()) -> np.ndarray:
        """Return the fitted quantity for other rows.

        features: the features of the fit, in the same units. only: names of the terms to add up, () = all. Returns
        seconds, one per row. Raises KeyError if a feature is missing.
        """
        names = only or self.coefficients
        total: Any = sum(self.coefficients[name].value * np.asarray(features[name]) for name in names)
        return np.asarray(total)


@dataclass(frozen=True)
class Score:
    """Statistics of |predicted / measured - 1| over rows, as fractions."""

    mean: float
    median: float
    p90: float
    max: float
    count: int


def fit(features: Features, measured: Sequence[float] | np.ndarray, resamples: int = 0, seed: int = 0) -> Fit:
    """Fit non-negative coefficients by least squares on relative errors.

    features: per name one number >= 0 per row, any unit. measured: seconds, > 0, one per row. resamples: bootstrap
    samples over rows for intervals, 0 = none (default). seed: of the random numbers. Returns the fit; a coefficient is
    0 if the data require a negative one. Cost: 1 + resamples small NNLS problems. Raises UsageError for values
    that are not positive and for fewer rows than features. Source: Lawson and Hanson 1974, chapter 23 (NNLS); rows
    divided by the measured value as in Valen 2023's digest, model notes, section 1.
    """
    names, matrix, values = list(features), _matrix(features), np.asarray(measured, dtype=float)
    _require_fittable(names, matrix, values)
    relative = matrix / values[:, None]
    best = _solve(relative)
    low, high = _intervals(relative, best, resamples, seed) if resamples else np.full((2, len(names)), math.nan)
    made = (Coefficient(float(b), float(lo), float(hi)) for b, lo, hi in zip(best, low, high, strict=True))
    return Fit(dict(zip(names, made, strict=True)), len(values))


def fit_with_break(
    features: Callable[[float], Features],
    measured: Sequence[float] | np.ndarray,
    breaks: Sequence[float],
    resamples: int = 0,
    seed: int = 0,
) -> tuple[float, Fit]:
    """Fit with each of several breaks of a feature (a protocol's limit in bytes, say) and keep the best.

    features: from a break to the features split there. breaks: candidates in order of preference; a later one must
    lower the squared error by 2 %. measured, resamples, seed: as in `fit`; intervals hold for the chosen break. Returns
    the break and the fit. Raises as `fit` does.
    """
    chosen, least = breaks[0], math.inf
    for candidate in breaks:
        split = features(candidate)
        errors = fit(split, measured).predict(split) / np.asarray(measured) - 1
        if (error := max(float(errors @ errors), ROUNDING)) < (1 - BREAK_GAIN) * least:
            chosen, least = candidate, error
    return chosen, fit(features(chosen), measured, resamples, seed)


def score(predicted: Sequence[float] | np.ndarray, measured: Sequence[float] | np.ndarray) -> Score:
    """Score predictions by their relative errors.

    predicted, measured: seconds, one per row; measured > 0. Returns mean, median, 90th percentile and maximum as
    fractions. Raises UsageError without rows.
    """
    errors = np.abs(np.asarray(predicted, dtype=float) / np.asarray(measured, dtype=float) - 1)
    if not errors.size:
        raise UsageError("no row is left to score a prediction on; hold out at least one")
    mean, median, p90, most = map(float, (errors.mean(), np.median(errors), np.percentile(errors, 90), errors.max()))
    return Score(mean, median, p90, most, errors.size)


def _matrix(features: Features) -> np.ndarray:
    return np.column_stack([np.asarray(column, dtype=float) for column in features.values()])


def _require_fittable(names: Sequence[str], matrix: np.ndarray, values: np.ndarray) -> None:
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if bad.size:
        raise UsageError(
            f"relative errors need positive times, but row {bad[0]} is {values[bad[0]]:g}; leave out rows without the "
            "part"
        )
    if len(values) < len(names):
        raise UsageError(f"{len(values)} rows cannot determine {', '.join(names)}; measure more sizes or depths")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        worst = names[int(np.flatnonzero(~np.isfinite(matrix).all(axis=0) | (matrix < 0).any(axis=0))[0])]
        raise UsageError(f"feature '{worst}' has a value that is negative or not a number; features are counts")


def _solve(relative: np.ndarray) -> np.ndarray:
    """Return coefficients that bring each row's sum closest to 1.

    The columns are scaled, as bytes and rounds differ by 10^9.
    """
    from scipy.optimize import nnls

    scale = relative.max(axis=0)
    scale[scale == 0] = 1
    found: np.ndarray = nnls(relative / scale, np.ones(len(relative)))[0] / scale
    return found


def _intervals(relative: np.ndarray, best: np.ndarray, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = np.random.default_rng(seed).integers(len(relative), size=(resamples, len(relative)))
    samples = np.array([_solve(relative[rows]) for rows in drawn])
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(samples, [tail, 100 - tail], axis=0)
    return np.minimum(low, best), np.maximum(high, best)
