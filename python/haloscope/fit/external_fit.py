"""Costs of a machine and of the programs that ran on it, fitted to third-party timings of exchanges.

The fit uses only predictions of the model itself: parameters become a machine profile per program, and the residual of
a row is the logarithm of predicted over measured. Source: Davis 2017, section 5.4 (relative errors).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from haloscope.errors import UsageError
from haloscope.fit import external_predictions
from haloscope.fit.external_table import Measured
from haloscope.model.profile import Profile

FEWEST = 8  # min rows of a fit
MOST_ITERATIONS = 12
ENOUGH = 1e-3  # relative gain of an iteration below which the search ends
CONTENDED = 1.5  # power of a rank's threads in the start value of the cost of their messages
FORGIVEN = 0.15  # of log(predicted / measured), above which an outlier pulls less
LARGE_PAGE_BYTES, LINE_BYTES = 2**21, 64

# Owners of a parameter: the machine, a program, or a program with one number of threads per rank.
MACHINE, PROGRAM, TEAM = "machine", "program", "team"


@dataclass(frozen=True)
class Parameter:
    """A fitted cost: its owner, the start of the search, and the start's uncertainty, a factor (standard deviation)."""

    name: str
    of: str
    start: float
    spread: float
    meaning: str


# The start of message_s grows with the threads of a rank: see _start.
PARAMETERS = (
    Parameter("memory_bytes_per_s", MACHINE, 5e10, 2.0, "memory bandwidth of a socket"),
    Parameter("scatter", MACHINE, 2.0, 1.3, "cache use of fields in small pages, in multiples of their bytes"),
    Parameter("latency_s", MACHINE, 5e-6, 5.0, "of a message between nodes"),
    Parameter("injection_bytes_per_s", TEAM, 4e9, 5.0, "of a node to other nodes"),
    Parameter("row_s", PROGRAM, 1e-8, 5.0, "packing a row shorter than a cache line"),
    Parameter("field_returns", PROGRAM, 0.7, 5.0, "visits to a field's lines after the first"),
    Parameter("buffer_visits", PROGRAM, 1.0, 5.0, "to the buffers of messages inside a node"),
    Parameter("message_s", TEAM, 1e-6, 10.0, "a message, besides its bytes"),
    Parameter("byte_s", TEAM, 4e-10, 10.0, "a byte inside a node, in MPI"),
    Parameter("shared_message_s", PROGRAM, 1e-6, 5.0, "a message that its receiver reads from the sender's field"),
    Parameter("shared_row_s", PROGRAM, 1e-8, 5.0, "a short row of it"),
    Parameter("shared_byte_s", PROGRAM, 5e-11, 5.0, "a byte of it"),
)
_BY_NAME = {p.name: p for p in PARAMETERS}
_SHARED, _PLAIN = ("shared_message_s", "shared_row_s", "shared_byte_s"), ("row_s", "field_returns", "byte_s")
_MEMORY = ("memory_bytes_per_s", "scatter", "field_returns", "buffer_visits")
_NETWORK = ("latency_s", "injection_bytes_per_s")

Values = Mapping[str, float]  # by the names of `key_of`


def key_of(parameter: Parameter, row: Measured) -> str:
    """Return the name of a parameter's value for a row: the same for rows that share it."""
    of = {MACHINE: row.machine, PROGRAM: row.program, TEAM: f"{row.program}, {row.threads} threads"}[parameter.of]
    return f"{parameter.name} ({of})"


def used_by(row: Measured) -> tuple[str, ...]:
    """Return the names of the parameters that a row's prediction depends on."""
    shared, away = "shared" in row.strategy, row.nodes > 1
    names = [p.name for p in PARAMETERS if row.cache_bytes or p.name not in _MEMORY]
    if not shared:
        names = [n for n in names if n not in _SHARED]
    elif not away:
        names = [n for n in names if n not in (*_PLAIN, "buffer_visits", "message_s")]
    return tuple(n for n in names if away or n not in _NETWORK)


@dataclass(frozen=True)
class Fit:
    """Fitted values and their data.

    values: by `key_of`. rows: number of fitted rows. residual: their root mean square of log(predicted / measured).
    source: origin of the rows, for the profiles.
    """

    values: Values
    rows: int
    residual: float
    source: str

    def profile_of(self, row: Measured) -> dict:
        """Return the profile of the row's program and threads as JSON, without the kernels that a prediction needs.

        Raises UsageError if no rows of them were fitted.
        """
        for parameter in PARAMETERS:
            if parameter.name in used_by(row) and key_of(parameter, row) not in self.values:
                raise UsageError(
                    f"nothing was fitted for {key_of(parameter, row).partition('(')[2].rstrip(')')}; fit on rows of "
                    "it too"
                )
        return profile_json(row, self.values, self.source, self.residual)


def profile_json(row: Measured, values: Values, source: str, residual: float) -> dict:
    """Return the profile that predicts a row. Values that no row of the fit depends on keep their start."""
    v = {p.name: values.get(key_of(p, row), p.start) for p in PARAMETERS}
    plain = {
        "per_message_s": v["message_s"],
        "field_returns": v["field_returns"],
        "buffer_visits": v["buffer_visits"],
        "packs_all": row.packs_all,
        "one_buffer": row.one_buffer,
    }
    shared = {
        "from_fields": True,
        "per_message_s": v["shared_message_s"],
        "per_row_s": v["shared_row_s"],
        "per_byte_s": v["shared_byte_s"],
    }
    inside = {
        name: {"segments": _segments(0, v["byte_s"]), "contention": {"shared": 1 / blocks}}  # each block has its core
        for name, blocks in (("socket", row.cores), ("node", row.cores * row.sockets))
    }
    between = {"segments": _segments(v["latency_s"], 0), "contention": {"shared": 0, "duplex": 1}}
    memory = {
        "cache_bytes": row.cache_bytes,
        "line_bytes": LINE_BYTES,
        "bytes_per_s": v["memory_bytes_per_s"],
        "large_page_bytes": LARGE_PAGE_BYTES,
        "scatter": max(1.0, v["scatter"]),
    }
    return {
        "schema": "haloscope-profile",
        "schema_version": 1,
        "name": name_of(row),
        "origin": "published",
        "source": source,
        "machine": {
            "host": row.machine,
            "cpu": row.machine,
            "nodes": row.nodes,
            "sockets_per_node": row.sockets,
            "cores_per_socket": row.cores,
        },
        "network": {"classes": {**inside, "network": between}, "injection_bytes_per_s": v["injection_bytes_per_s"]},
        "pack": {
            "contiguous": {"1": _segments(0, 0)},
            "lines": {"1": _segments(0, 0)},
            "strided": {"1": _segments(0, v["row_s"] / 8)},
        },
        "strided_row_bytes": 8,
        **({"memory": memory} if row.cache_bytes else {}),
        "transports": {"p2p": plain, "shared": shared},
        "discrepancy": {"exchange": residual},
    }


def name_of(row: Measured) -> str:
    """Return the name of a row's profile, which is also used in file names."""
    words = f"{row.machine} {row.program}" + (f" {row.threads} threads" if row.threads > 1 else "")
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _segments(fixed: float, slope: float) -> list[dict]:
    return [{"from_bytes": 0, "to_bytes": None, "latency_s": fixed, "per_byte_s": slope}]


class Predictor:
    """Predicts rows for changing values; a row that a change does not affect is not predicted again."""

    def __init__(self, rows: Sequence[Measured]):
        """Declare the rows to predict."""
        external_predictions.declare(rows)
        self._rows = rows
        self._used = [[(p, key_of(p, row)) for p in PARAMETERS if p.name in used_by(row)] for row in rows]
        self._known: list[dict[tuple, float]] = [{} for _ in rows]

    def times(self, values: Values) -> np.ndarray:
        """Return the predicted seconds of all rows."""
        profiles: dict[tuple, Profile] = {}
        return np.array([self._time(number, values, profiles) for number in range(len(self._rows))])

    def _time(self, number: int, values: Values, profiles: dict[tuple, Profile]) -> float:
        row, known = self._rows[number], self._known[number]
        state = tuple(values[key] for _, key in self._used[number])
        if state not in known:
            team = (
                row.program,
                row.threads,
                row.machine,
                row.packs_all,
                row.one_buffer,
                row.cache_bytes,
                row.sockets,
                row.cores,
                row.nodes,
            )
            if team not in profiles:
                rows = [r for r in self._rows if (r.program, r.threads, r.machine) == team[:3]]
                profiles[team] = external_predictions.with_kernels(profile_json(row, values, "a fit", 0.0), rows)
            if len(known) > 2 * len(PARAMETERS):
                known.clear()
            known[state] = external_predictions.predict_row(row, profiles[team]).time_s
        return known[state]


def _start(parameter: Parameter, row: Measured) -> float:
    if parameter.name == "message_s":  # calls of a rank's threads wait for each other
        return float(parameter.start * row.threads**CONTENDED)
    return parameter.start


def fit(rows: Sequence[Measured], source: str, on_step: Callable[[float], None] = lambda _: None) -> Fit:
    """Fit the costs that some rows depend on, to the medians of these rows only.

    source: origin of the rows, for the profiles. on_step: called with the part done of the max number of evaluations.
    Errors are relative, the loss is robust. Each parameter's start counts as one measurement of it, so parameters that
    the rows do not determine stay there. Raises UsageError for too few rows. Cost: minutes for a few hundred rows of up
    to 10^3 blocks.
    """
    from scipy.optimize import least_squares

    if len(rows) < FEWEST:
        raise UsageError(f"{len(rows)} exchanges are too few for a fit, which needs {FEWEST}; fit on more of them")
    wanted: dict[str, tuple[float, float]] = {}
    for row in rows:
        for name in used_by(row):
            parameter = _BY_NAME[name]
            wanted.setdefault(key_of(parameter, row), (math.log(_start(parameter, row)), math.log(parameter.spread)))
    starts, spreads = (np.array(column) for column in zip(*wanted.values(), strict=True))
    predictor, measured = Predictor(rows), np.log([row.median_s for row in rows])
    count, most = 0, (len(starts) + 1) * MOST_ITERATIONS

    def residuals(logs: np.ndarray) -> np.ndarray:
        nonlocal count
        on_step((count := count + 1) / most)
        off = np.log(predictor.times(dict(zip(wanted, np.exp(logs), strict=True)))) - measured
        return np.concatenate([off, FORGIVEN * (logs - starts) / spreads])

    found = least_squares(
        residuals, starts, loss="soft_l1", f_scale=FORGIVEN, diff_step=1e-3, ftol=ENOUGH, max_nfev=MOST_ITERATIONS
    )
    values = dict(zip(wanted, map(float, np.exp(found.x)), strict=True))
    off = np.log(predictor.times(values)) - measured
    return Fit(values, len(rows), float(np.sqrt(np.mean(off**2))), source)
