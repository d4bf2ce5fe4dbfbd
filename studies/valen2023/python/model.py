"""The analytic model of a deep-halo run: phased time is the sum of its parts, overlapped time hides some of them.

Source: Valen 2023, appendix C; forms and windows of the study's digest, section 11, and its model notes, section 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope.errors import UsageError
from haloscope.studies.parts import concurrent, sequence
from haloscope_studies.valen2023 import regression, timers
from haloscope_studies.valen2023.regression import Features, Fit

BREAKS = (1e5, 2e5, 4e5, 8e5, 1.6e6)  # bytes per round where a message's cost per byte may change
MISS = 1.5  # a direct message off the ordered one's cost by this factor follows no law of bytes and depth
VALUE_BYTES = 4

# Parts concurrent with the inner sweep, and parts after it. `waiting` and `imbalance` are the two parts of desync.
WINDOWS = {
    "hides all": concurrent("inner", sequence("message", "waiting", "imbalance", "unpack")),
    "unpack after": sequence(concurrent("inner", sequence("message", "waiting", "imbalance")), "unpack"),
    "desync after": sequence(concurrent("inner", sequence("message", "unpack")), "waiting", "imbalance"),
    # Unpack kernels get the device only when the inner sweep drains, and nothing can hide the slowest rank's extra
    # work.
    "unpack, imbalance after": sequence(concurrent("inner", sequence("message", "waiting")), "unpack", "imbalance"),
    "hides none": sequence("inner", "message", "waiting", "imbalance", "unpack"),
}
PHASED = sequence("pack", "message", "waiting", "imbalance", "unpack", "sweep", "rest")
OVERLAPPED = {name: sequence("pack", window, "outer", "sweep", "rest") for name, window in WINDOWS.items()}


@dataclass(frozen=True)
class Cell:
    """One cell of the study's tables: a program at a size and a depth, with the times of a run in seconds.

    exchange: "ordered" or "direct". local: height and length of a rank's own points. times: execution, pack, unpack,
    inner, outer, primary, message, desync (the last as measured: overlapped, it holds waiting for the inner sweep).
    """

    machine: str
    side: int
    exchange: str
    overlapped: bool
    depth: int
    iterations: int
    local: tuple[int, int]
    times: Mapping[str, float]

    @property
    def program(self) -> str:
        """The name of the study's program, such as "ordered phased"."""
        return f"{self.exchange} {'overlapped' if self.overlapped else 'phased'}"

    @property
    def rounds(self) -> int:
        """Number of exchanges in a run."""
        return -(-self.iterations // self.depth)

    @property
    def sweeps(self) -> int:
        """Full sweeps in a run: overlapped, the first of each round is inner and outer instead."""
        return self.iterations - self.rounds * self.overlapped

    @property
    def halo_bytes(self) -> int:
        """Bytes that leave a rank per round, in either exchange: 8 D (h + l) + 16 D^2 (section 3)."""
        height, length = self.local
        return VALUE_BYTES * (2 * self.depth * (height + length) + 4 * self.depth**2)

    @property
    def swept_points(self) -> int:
        """Points of a full sweep: all but the outermost ring of the adjusted block (section 4)."""
        height, length = self.local
        return (height + 2 * self.depth - 2) * (length + 2 * self.depth - 2)

    @property
    def inner_points(self) -> int:
        """Points that need no halo."""
        height, length = self.local
        return (height - 2) * (length - 2)

    @property
    def communication(self) -> float:
        """Seconds in message, desync and unpack: of overlapped runs, only this sum is meaningful, not its parts."""
        return self.times["message"] + self.times["desync"] + self.times["unpack"]

    @property
    def rest(self) -> float:
        """Seconds of a run that no timer but inner covers: launches, events, synchronisation."""
        return timers.uncovered(self.times)


def column(cells: Sequence[Cell], name: str) -> np.ndarray:
    """Return a property of each cell as a float."""
    return np.array([getattr(c, name) for c in cells], dtype=float)


def timer(cells: Sequence[Cell], name: str) -> np.ndarray:
    """Return a timer of each cell in seconds."""
    return np.array([c.times[name] for c in cells], dtype=float)


def _per_round(cells: Sequence[Cell], points: np.ndarray | None = None) -> Features:
    rounds = column(cells, "rounds")
    return (
        {"round": rounds, "byte": rounds * column(cells, "halo_bytes")}
        if points is None
        else {"round": rounds, "point": rounds * points}
    )


def _sweep(cells: Sequence[Cell]) -> Features:
    sweeps = column(cells, "sweeps")
    return {"sweep": sweeps, "point": sweeps * column(cells, "swept_points")}


def _outer(cells: Sequence[Cell]) -> Features:
    return _per_round(cells, column(cells, "swept_points") - column(cells, "inner_points"))


def _message(cells: Sequence[Cell], border: float) -> Features:
    """Return four features. The fourth is a cost per halo layer; without it the V100 set is missed by up to half."""
    rounds, size = column(cells, "rounds"), column(cells, "halo_bytes")
    return {
        "round": rounds,
        "byte below break": rounds * np.minimum(size, border),
        "byte above break": rounds * np.maximum(size - border, 0),
        "iteration": column(cells, "iterations"),
    }


def _desync(cells: Sequence[Cell]) -> Features:
    return {**_per_round(cells), "point": column(cells, "iterations") * column(cells, "swept_points")}


def _rest(cells: Sequence[Cell]) -> Features:
    return {"round": column(cells, "rounds"), "iteration": column(cells, "iterations")}


# part: its features, its timer, whether it is fitted to overlapped runs (else to phased ones)
_SHARED: dict[str, tuple[Callable, str, bool]] = {
    "pack": (_per_round, "pack", False),
    "unpack": (_per_round, "unpack", False),
    "sweep": (_sweep, "primary", False),
    "inner": (lambda cells: _per_round(cells, column(cells, "inner_points")), "inner", True),
    "outer": (_outer, "outer", True),
}


@dataclass(frozen=True)
class Model:
    """Fits of one machine: parts that all programs share, message (with its break) and desync by exchange, rest by
    schedule.
    """

    shared: Mapping[str, Fit]
    message: Mapping[str, tuple[float, Fit]]
    desync: Mapping[str, Fit]
    rest: Mapping[bool, Fit]

    def times(self, cells: Sequence[Cell]) -> dict[str, np.ndarray]:
        """Return the seconds per run of every part, one per cell; desync as `waiting` and `imbalance`.

        cells: of the fitted machine; their times are not read. Raises UsageError for an exchange it was not fitted
        on.
        """
        parts = {name: fit.predict(_SHARED[name][0](cells)) for name, fit in self.shared.items()}
        parts["message"] = self.ordered_or_direct(cells)
        parts["waiting"] = _grouped(cells, "exchange", self.desync, _waiting)
        parts["imbalance"] = _grouped(cells, "exchange", self.desync, lambda f, c: f.predict(_desync(c), ["point"]))
        parts["rest"] = _grouped(cells, "overlapped", self.rest, lambda f, c: f.predict(_rest(c)))
        return parts

    def ordered_or_direct(self, cells: Sequence[Cell], exchange: str = "") -> np.ndarray:
        """Return message seconds per run by each cell's exchange, or all as if made by `exchange`."""

        def predict(fitted: tuple[float, Fit], group: Sequence[Cell]) -> np.ndarray:
            return fitted[1].predict(_message(group, fitted[0]))

        return (
            predict(self.message[exchange], cells) if exchange else _grouped(cells, "exchange", self.message, predict)
        )

    def predict(self, cells: Sequence[Cell], window: str = "unpack, imbalance after") -> np.ndarray:
        """Return execution seconds per run, one per cell.

        cells: as in `times`. window: which parts overlap the inner sweep in overlapped runs, a key of WINDOWS.
        """
        parts = self.times(cells)
        return np.where(column(cells, "overlapped") > 0, OVERLAPPED[window].time(parts), PHASED.time(parts))


def _waiting(fitted: Fit, cells: Sequence[Cell]) -> np.ndarray:
    return fitted.predict(_desync(cells), ["round", "byte"])


def _grouped(cells: Sequence[Cell], by: str, fits: Mapping, predict: Callable) -> np.ndarray:
    """Predict each cell by the fit of its group."""
    keys, result = [getattr(c, by) for c in cells], np.empty(len(cells))
    for key in set(keys):
        if key not in fits:
            raise UsageError(f"the model was not fitted on runs with {by} {key}; fit it on some")
        rows = [i for i, k in enumerate(keys) if k == key]
        result[rows] = predict(fits[key], [cells[i] for i in rows])
    return result


def fit(cells: Sequence[Cell], resamples: int = 0) -> Model:
    """Fit the model to the runs of one machine.

    cells: phased runs of each exchange to be predicted and overlapped runs, at depths and sizes that distinguish the
    features.
    resamples: bootstrap samples for intervals, 0 = none. Parts are fitted to phased runs, where they do not disturb
    each other; inner, outer and the overlapped rest to overlapped ones. Raises UsageError when runs are too few.
    Source: model notes, section 1.
    """
    if len({c.machine for c in cells}) != 1:
        raise UsageError("a model describes one machine; pass the runs of exactly one")
    runs = {flag: [c for c in cells if c.overlapped is flag] for flag in (False, True)}
    shared = {
        name: regression.fit(features(runs[flag]), timer(runs[flag], clock), resamples)
        for name, (features, clock, flag) in _SHARED.items()
    }
    message, desync = {}, {}
    for exchange in sorted({c.exchange for c in runs[False]}):
        own = [c for c in runs[False] if c.exchange == exchange]
        message[exchange] = regression.fit_with_break(
            functools.partial(_message, own), timer(own, "message"), BREAKS, resamples
        )
        desync[exchange] = regression.fit(_desync(own), timer(own, "desync"), resamples)
    rest = {flag: regression.fit(_rest(own), column(own, "rest"), resamples) for flag, own in runs.items()}
    return Model(shared, message, desync, rest)


@dataclass(frozen=True)
class Advice:
    """A depth chosen by the model among measured cells, and the cost of this choice."""

    chosen: Cell
    best: Cell
    unpredictable: tuple[int, ...]  # excluded depths, as no law of bytes and depth holds there

    @property
    def regret(self) -> float:
        """Measured time of the choice over the measured best, less 1."""
        return self.chosen.times["execution"] / self.best.times["execution"] - 1


def unpredictable(model: Model, cells: Sequence[Cell]) -> set[tuple[int, int]]:
    """Return (side, depth) of direct exchanges whose measured message time is 1.5 times off the cost of ordered ones.

    Both exchanges move the same bytes, so an ordered fit should hold for both. Only phased runs are judged, since
    overlapped ones mix message with waiting; the verdict is for both schedules. Source: checklist row V21.
    """
    direct = [c for c in cells if c.exchange == "direct" and not c.overlapped]
    if not direct:
        return set()
    ratio = timer(direct, "message") / model.ordered_or_direct(direct, "ordered")
    return {(c.side, c.depth) for c, r in zip(direct, ratio, strict=True) if max(r, 1 / r) > MISS}


def advise(model: Model, cells: Sequence[Cell], avoid: Collection[tuple[int, int]] = ()) -> Advice:
    """Choose the cell that the model predicts fastest, and compare it with the measured fastest.

    cells: the alternatives, all of one side. avoid: (side, depth) at which direct exchanges are not to be trusted.
    Returns the advice; if every cell is to be avoided, none is excluded from the choice, but all are named.
    """
    shunned = [c for c in cells if c.exchange == "direct" and (c.side, c.depth) in avoid]
    trusted = [c for c in cells if c not in shunned] or list(cells)
    chosen = trusted[int(np.argmin(model.predict(trusted)))]
    best = min(cells, key=lambda c: c.times["execution"])
    return Advice(chosen, best, tuple(sorted({c.depth for c in shunned})))
