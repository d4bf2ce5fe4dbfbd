"""Costs fitted to the points of several launches: segments and named terms with intervals, without unidentified ones.

Launches are the outer sample: points of one launch share placement and addresses. A bootstrap sample draws launches,
then points within each. A parameter whose interval reaches 0 is not significant and is set to 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from haloscope.bridge import kernel_of
from haloscope.bridge.choice import Choice
from haloscope.model import fit
from haloscope.model.segments import Segment, evaluate, to_json

RESAMPLES = 200
CONFIDENCE = 0.95
LOSS = "soft_l1"
PARAMETERS = ("fixed", "slope")
ALIKE = 0.1  # rows and bytes that differ from a multiple of each other by less identify one cost
SPREAD = 10
OUTLYING = 1.5  # times the median error, above which a row counts less
FORGIVING = 10  # iterations of the weights
LANES = (1, 2, 4, 8, 16)  # of vectors, tried in turn
FEW_BLOCKS = 5  # shapes below which no cost of rows is fitted
ROUNDING = 1e-9  # parts of a time below this fraction count as 0


@dataclass(frozen=True)
class Row:
    """One point of a launch: an amount (bytes, cells), its shortest sample in seconds, and the rows of its bytes."""

    launch: str
    amount: float
    seconds: float
    rows: float = 0.0


@dataclass(frozen=True)
class Law:
    """A fitted cost. name: its path in the profile. unit: bytes or cells. dropped: (segment number, parameter) pairs
    that the data do not identify."""

    name: str
    unit: str
    segments: tuple[Segment, ...]
    rows: tuple[Row, ...]
    dropped: tuple[tuple[int, str], ...] = ()

    def errors(self, segment: Segment | None = None) -> np.ndarray:
        """Return |fitted - measured| / measured of the points of one segment, or of all."""
        rows = [r for r in self.rows if segment is None or segment.start <= r.amount < segment.end]
        x, y, lines = (np.array([getattr(r, name) for r in rows]) for name in ("amount", "seconds", "rows"))
        found: np.ndarray = np.abs(np.atleast_1d(evaluate(self.segments, x, lines)) - y) / y
        return found


def fit_law(name: str, rows: Iterable[Row], unit: str = "bytes", most: int = 3, steeper: bool = False) -> Law:
    """Fit segments to rows by relative errors, with automatic breaks, positive parameters and a robust loss.

    most: max number of segments. steeper: later segments may have a negative fixed time, where a steeper regime begins;
    such borders lie in the middle, in logarithms, of the amounts that they separate, others at the later one. Raises
    UsageError without rows. Source: Davis 2017, section 5.4 (segments); the search for breaks is new.
    """
    rows = tuple(rows)
    x, y = np.array([r.amount for r in rows], float), np.array([r.seconds for r in rows])
    launches = np.array([r.launch for r in rows])
    amounts_per_range = 2 if len(np.unique(x)) >= 4 else len(np.unique(x))
    least = max(2, amounts_per_range * len(np.unique(launches)))
    breaks = fit.find_breaks(x, y, most, least) if len(x) >= 2 * least else []
    made, dropped = [], []
    for number, plain in enumerate(fit.pieces(x, y, breaks, loss=LOSS)):
        inside = np.flatnonzero((x >= plain.start) & (x < plain.end))
        free = steeper and number > 0
        segment, missing = _line(plain, x[inside], y[inside], launches[inside], free)
        made.append(segment)
        dropped += [(number, parameter) for parameter in missing]
    return Law(name, unit, tuple(_apart(made, x) if steeper else made), rows, tuple(dropped))


def fit_rows(
    name: str, rows: Iterable[Row], growing: Sequence[str] = ("per_row", "slope"), fixed: float | None = None
) -> Law:
    """Fit a fixed time, a time per row and one per byte to copies of bytes in rows, all positive, by relative errors.

    rows: at least one. growing: the times that grow with the amount, "per_row" and "slope"; if all rows are about
    equally long, only the first one grows. fixed: the fixed time if it is known. Amounts within a factor of SPREAD do
    not distinguish a fixed time from one that grows; then a fit without growing times is not used, since it would be
    far off for other amounts.
    """
    rows = tuple(rows)
    seconds, launches = np.array([r.seconds for r in rows]), [r.launch for r in rows]
    features = _features_of(rows)
    grown = {key: features[key] for key in growing if any(features[key])}
    base = np.full(len(rows), fixed or 0.0)
    wanted = grown if fixed is not None else {"fixed": features["fixed"]} | grown
    found = fit_terms(name, wanted, base, seconds, launches, True, ALIKE, scale=seconds)
    if grown and not set(grown) & set(found.values) and all(max(c) < SPREAD * min(c) for c in grown.values()):
        found = fit_terms(name, grown, base, seconds, launches, True, ALIKE, scale=seconds)
    values = {"fixed": fixed or 0.0} | found.values
    segment = Segment(
        0.0, math.inf, values["fixed"], values.get("slope", 0.0), found.interval, values.get("per_row", 0.0)
    )
    return Law(name, "bytes", (segment,), rows, tuple((0, parameter) for parameter in found.dropped))


def _features_of(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return the features of the parameters of a law of rows."""
    return {"fixed": [1.0] * len(rows), "per_row": [r.rows for r in rows], "slope": [r.amount for r in rows]}


def error_of_rows(rows: Sequence[Row], beyond: np.ndarray) -> float:
    """Return the sum of squared logarithms of fitted over measured times, for two laws with a common fixed time.

    beyond: the weight of the second law in each row's time, 0 to 1. A row counts at most 1, which limits outliers.
    """
    one = np.column_stack(list(_features_of(rows).values())) / np.array([[r.seconds] for r in rows])
    design = np.column_stack([one[:, 0], one[:, 1:] * (1 - beyond)[:, None], one[:, 1:] * beyond[:, None]])
    found = _solve(design, np.ones(len(rows)), np.ones((1, len(rows))), positive=True)[0]
    return float(np.sum(np.minimum(np.log((design @ found).clip(1e-9)) ** 2, 1.0)))


def _apart(made: list[Segment], x: np.ndarray) -> list[Segment]:
    """Move borders from the first amount of a segment to the middle, in logarithms, of the gap before it.

    The data do not show the point in the gap at which a block outgrows a cache (messages change protocol at round
    numbers, which are the measured ones). No border moves below the point where the two lines meet.
    """
    for k in range(1, len(made)):
        before, after = made[k - 1], made[k]
        border = math.sqrt(x[x < after.start].max() * after.start)
        if after.slope > before.slope:
            border = max(border, (before.fixed - after.fixed) / (after.slope - before.slope))
        border = min(border, after.start)
        made[k - 1], made[k] = replace(before, end=border), replace(after, start=border)
    return made


def fit_kernels(
    section: dict, rows: Mapping[tuple[str, int, int], Sequence[Row]], prefix: str = "", most: int = 4
) -> list[Law]:
    """Fit costs of kernels over cells into `kernels` and `fused` of a profile's section; return the laws.

    rows: by name (APP/FORM/REAL), number of fused sweeps, and count (active cores, ranks of a device). prefix: of the
    laws' names.
    """
    made = []
    for (name, levels, count), found in sorted(rows.items()):
        fused = levels > 1
        part = f"fused/{levels}" if fused else "kernels"
        law = fit_law(f"{prefix}{part}/{name}/{count}", found, "cells", most=most, steeper=True)
        made.append(law)
        table = section.setdefault("fused" if fused else "kernels", {}).setdefault(name, {})
        table = table.setdefault(str(levels), {}) if fused else table
        table[str(count)] = to_json(law.segments, "cells")
    return made


@dataclass(frozen=True)
class RowCost:
    """The cost of a kernel's row in cells: whole vectors of `lanes` cells, and `cells` more."""

    lanes: int = 1
    cells: float = 0.0

    def amount(self, row: Row) -> float:
        """Return the cost of a block in cells; row: its cells and rows."""
        return row.rows * (self.lanes * math.ceil(row.amount / row.rows / self.lanes) + self.cells)

    def counted(self, rows: Iterable[Row]) -> list[Row]:
        """Return points with their cost in cells as the amount."""
        return [replace(row, amount=self.amount(row)) for row in rows]


def fit_row_cost(rows: Sequence[Row]) -> RowCost:
    """Return the cost of a kernel's row, from sweeps of blocks in caches close to the core: memory hides it beyond.

    rows: with the cells of blocks as amounts. Sweeps take a time for each call, row and vector; of all LANES, the value
    with the smallest error counts. A row has no extra cost if the blocks are too few, or if it does not lower the error
    by a fifth.
    """
    if len({(r.amount, r.rows) for r in rows}) < FEW_BLOCKS:
        return RowCost()
    y, of_each = np.array([r.seconds for r in rows]), np.ones(len(rows))

    def fitted(*columns: Sequence[float]) -> tuple[np.ndarray, float]:
        design = np.column_stack([of_each, *columns]) / y[:, None]
        found = _solve(design, of_each, of_each[None, :], positive=True)[0]
        return found, float(np.mean(np.abs(design @ found - 1)))

    _, least = fitted([r.amount for r in rows])
    best, least = RowCost(), 0.8 * least
    for lanes in LANES:
        found, off = fitted([RowCost(lanes).amount(r) for r in rows], [r.rows for r in rows])
        if found[1] > 0 and off < least:
            best, least = RowCost(lanes, float(found[2] / found[1])), off
    return best


def kernel_name(request: Mapping, point: Mapping) -> str:
    """Return the name in profiles of the kernel of a record's point."""
    name = kernel_of(Choice.from_json(request))
    return f"{name}:{point['sweep']}" if "sweep" in point else name


def _line(plain: Segment, x: np.ndarray, y: np.ndarray, launches: np.ndarray, free: bool) -> tuple[Segment, list[str]]:
    """Return a segment with intervals, and the parameters that are not identified."""
    values = np.array([plain.fixed, plain.slope])
    positive = True
    if free:
        fixed, slope = fit.line(x, y, positive=False, loss=LOSS)
        if slope > 0 and fixed < 0 and fixed + slope * max(plain.start, x.min()) > 0:
            values, positive = np.array([fixed, slope]), False
    if len(np.unique(x)) == 1:  # one amount does not identify two parameters
        kept = 1 if x[0] > 0 else 0
        return _only(plain, kept, x, y, resampled(launches)), [PARAMETERS[1 - kept]]
    counts = resampled(launches)
    ends = _interval(values, counts, fit.lines(x, y, counts, positive=positive))
    nothing = np.abs(values * (1, x.max())) < ROUNDING * y.max()
    unsure = [k for k in range(2) if nothing[k] or ends[0, k] <= 0 <= ends[1, k]]
    if unsure:  # beyond the first segment the slope is kept: costs must not stop growing
        alone = [_only(plain, kept, x, y, counts) for kept in range(2)]
        off = [np.abs(fit.relative_errors([whole(s)], x, y)).mean() for s in alone]
        kept = 1 if plain.start > 0 else int(np.argmin(off))
        return alone[kept], [PARAMETERS[1 - kept]]
    interval = {name: (float(ends[0, k]), float(ends[1, k])) for k, name in enumerate(PARAMETERS)}
    return Segment(plain.start, plain.end, float(values[0]), float(values[1]), interval), []


def whole(segment: Segment) -> Segment:
    """Return the segment with no borders."""
    return Segment(0.0, math.inf, segment.fixed, segment.slope)


def _only(plain: Segment, kept: int, x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> Segment:
    """Return the segment with one parameter alone, by relative least squares."""
    relative = (np.ones_like(x) if kept == 0 else x) / y
    value = relative.sum() / (relative**2).sum()
    ends = _interval(np.array([value]), counts, ((counts @ relative) / (counts @ relative**2))[:, None])
    fixed, slope = (0.0, float(value)) if kept else (float(value), 0.0)
    return Segment(plain.start, plain.end, fixed, slope, {PARAMETERS[kept]: (float(ends[0, 0]), float(ends[1, 0]))})


def _interval(values: np.ndarray, counts: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the ends of the 95 % intervals of some parameters, widened for few points (Student's t).

    counts: the bootstrap samples that the values in `found` were fitted to, one line per sample.
    """
    from scipy.stats import norm, t

    ends = np.quantile(found, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2), axis=0)
    points = counts.shape[1]
    free = max(1, points - len(values))
    tail = (1 + CONFIDENCE) / 2
    wider = t.ppf(tail, free) / norm.ppf(tail) * math.sqrt(points / free)
    widened: np.ndarray = values + (ends - values) * wider
    return widened


def resampled(launches: Sequence[str] | np.ndarray, resamples: int = RESAMPLES, seed: int = 1) -> np.ndarray:
    """Return the count of each row in each bootstrap sample, shape (resamples, rows).

    launches: of each row. Launches are drawn first, with a probability proportional to their rows, then rows within
    each. Otherwise a launch with only two rows in a state of the machine would make many samples useless.
    """
    random = np.random.default_rng(seed)
    _, group, sizes = np.unique(launches, return_inverse=True, return_counts=True)
    rows, first = np.argsort(group, kind="stable"), np.cumsum(sizes) - sizes
    counts = np.zeros((resamples, len(group)))
    sample = np.arange(resamples)[:, None]
    by_size = np.repeat(np.arange(len(sizes)), sizes)
    for drawn in by_size[random.integers(len(by_size), size=(len(sizes), resamples))]:  # one launch of every sample
        size = sizes[drawn][:, None]
        place = first[drawn][:, None] + (random.random((resamples, sizes.max())) * size).astype(int)
        taken = np.arange(sizes.max()) < size
        np.add.at(counts, (np.broadcast_to(sample, taken.shape)[taken], rows[place[taken]]), 1)
    return counts


@dataclass(frozen=True)
class Terms:
    """Named coefficients that add up to a time, with intervals. dropped: names that the data do not identify."""

    name: str
    values: dict[str, float]
    interval: dict[str, tuple[float, float]]
    dropped: tuple[str, ...]
    rows: int
    errors: np.ndarray = field(compare=False)  # relative, of each row


def fit_terms(
    name: str,
    features: Mapping[str, npt.ArrayLike],
    base: npt.ArrayLike,
    seconds: npt.ArrayLike,
    launches: Sequence[str],
    positive: bool = False,
    alike: float = ROUNDING,
    scale: npt.ArrayLike | None = None,
) -> Terms:
    """Fit seconds = base + sum of coefficient x feature; coefficients may be negative unless they must be `positive`.

    Errors are relative to `scale`, without it to the geometric mean of base and seconds, so that half and twice the
    base have equal weight. Rows that are farther from the fit than most count less. All lists have one entry per row;
    launches: of each row. Features that differ from linear combinations of earlier ones by no more than `alike` of
    their length are dropped, then features whose interval reaches 0, the least certain first.
    """
    base, seconds = np.asarray(base), np.asarray(seconds)
    weight = 1 / (np.sqrt(base * seconds) if scale is None else np.asarray(scale))
    columns = {n: np.asarray(c, float) * weight for n, c in features.items()}
    wanted = (seconds - base) * weight
    dropped = [n for n in columns if n not in _independent(columns, alike)]
    names = [n for n in columns if n not in dropped]
    counts = resampled(launches)

    def design_of(names: list[str]) -> np.ndarray:
        return np.column_stack([columns[n] for n in names]) if names else np.zeros((len(seconds), 0))

    forgiven = _forgiven(design_of(names), wanted, positive)
    while True:
        design = design_of(names)
        values = _solve(design, wanted, forgiven[None, :], positive)[0]
        ends = _interval(values, counts, _solve(design, wanted, counts * forgiven, positive))
        unsure = [k for k in range(len(names)) if ends[0, k] <= 0 <= ends[1, k]]
        if not unsure:
            break
        worst = max(unsure, key=lambda k: (ends[1, k] - ends[0, k]) / max(abs(values[k]), 1e-300))
        dropped.append(names.pop(worst))
    interval = {n: (float(ends[0, k]), float(ends[1, k])) for k, n in enumerate(names)}
    fitted = {n: float(values[k]) for k, n in enumerate(names)}
    return Terms(name, fitted, interval, tuple(dropped), len(seconds), (design @ values - wanted) / (weight * seconds))


def _forgiven(design: np.ndarray, wanted: np.ndarray, positive: bool) -> np.ndarray:
    """Return the weight of each row, 0 to 1, with which outliers count as in the loss soft_l1.

    Outliers are rows that are farther from the fit than most.
    """
    counts = np.ones(len(wanted))
    for _ in range(FORGIVING):
        off = np.abs(design @ _solve(design, wanted, counts[None, :], positive)[0] - wanted)
        usual = OUTLYING * float(np.median(off))
        if usual <= ROUNDING:
            break
        counts = 1 / np.sqrt(1 + (off / usual) ** 2)
    return counts


def _independent(columns: dict[str, np.ndarray], alike: float) -> list[str]:
    """Return the columns that differ by more than `alike` of their length from all sums of earlier ones."""
    kept: list[str] = []
    for name, column in columns.items():
        others = np.column_stack([columns[k] for k in kept]) if kept else np.zeros((len(column), 0))
        rest = column - others @ np.linalg.lstsq(others, column, rcond=None)[0]
        if np.linalg.norm(rest) > alike * np.linalg.norm(column):
            kept.append(name)
    return kept


def _solve(design: np.ndarray, wanted: np.ndarray, counts: np.ndarray, positive: bool) -> np.ndarray:
    """Return the coefficients for which design @ coefficients is closest to wanted, one line per line of `counts`, the
    weights of the rows."""
    scale = np.maximum(np.abs(design).max(axis=0, initial=0), 1e-300)
    weight = np.sqrt(counts)
    if positive and design.shape[1]:
        from scipy.optimize import nnls

        found: np.ndarray = np.array([nnls(w[:, None] * design / scale, w * wanted)[0] for w in weight]) / scale
        return found
    inverse = np.linalg.pinv(weight[:, :, None] * (design / scale), rcond=len(wanted) * np.finfo(float).eps)
    solved: np.ndarray = (inverse @ (weight * wanted)[:, :, None])[:, :, 0] / scale
    return solved
