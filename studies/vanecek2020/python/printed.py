"""Printed results of Vanecek 2020, with this program's names of variants."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from haloscope.studies import published
from haloscope_studies.vanecek2020 import variants

STUDY = "vanecek2020"
MISPRINT = "misprint"  # notes of times that repeat another one begin with it
ITERATIONS = 13  # of a test, of which three warm up
RAISED_BYTES = 40000  # of block 0 in the experiment on its send (section 4.6.1)
HALF = 0.0005  # speed-ups are printed with three digits after the point


@dataclass(frozen=True)
class Result:
    """One row of tables 4.2 to 4.6. seconds: of an iteration; speedup: None if it is not printed."""

    gpu: str
    workload: str
    variant: str
    day: str
    table: str
    seconds: float
    speedup: float | None
    misprinted: bool

    @property
    def blocking(self) -> bool:
        """True if sends block."""
        return "blocking" in variants.words_of(self.variant)


@dataclass(frozen=True)
class Claim:
    """A statement of the text, or its direct consequence: a range, and the tolerance of the ends of a recomputed one.

    high: None: at least `low`.
    """

    low: float
    high: float | None
    tolerance: float
    unit: str
    source: str

    def agrees(self, low: float, high: float) -> bool:
        """Return whether a recomputed range is the stated one."""
        if self.high is None:
            return low >= self.low
        return abs(low - self.low) <= self.tolerance and abs(high - self.high) <= self.tolerance

    @property
    def text(self) -> str:
        """The stated range."""
        if self.high is None:
            return f"more than {self.low:g} {self.unit}".strip()
        return range_text(self.low, self.high, self.unit)

    @property
    def bar(self) -> str:
        """The bar of a recomputed range."""
        return "as stated" if self.high is None else f"both ends within {self.tolerance:g} {self.unit}".strip()


def range_text(low: float, high: float, unit: str = "", digits: int = 4) -> str:
    """Return a range, or one number if both ends are the same."""
    ends = list(dict.fromkeys(f"{end:.{digits}g}" for end in (low, high)))
    return f"{' .. '.join(ends)} {unit}".strip()


_WORDS = {"task queue": "queue", "per-block": "channel", "memcpy": "device", "coherent pinned": "coherent"}


@functools.cache
def results() -> tuple[Result, ...]:
    """Return every printed time."""
    return tuple(
        Result(
            row["gpu"],
            row["workload"],
            _variant(row),
            row["day"],
            row["source_table"],
            1e-6 * float(row["time_us_per_iteration"]),
            float(row["speedup_printed"]) if row["speedup_printed"] else None,
            row["note"].startswith(MISPRINT),
        )
        for row in published(STUDY, "results")
    )


def _variant(row: dict[str, str]) -> str:
    words = (row["completion_or_channel"], row["send"], row["buffer"])
    return variants.canonical(f"{row['family']}:{','.join(_WORDS.get(word, word) for word in words)}")


def of_table(table: str) -> list[Result]:
    """Return the rows of a table."""
    return [row for row in results() if row.table == table]


@functools.cache
def claims() -> dict[str, Claim]:
    """Return the statements of the text."""
    return {
        row["claim"]: Claim(
            float(row["low"]),
            float(row["high"]) if row["high"] else None,
            float(row["tolerance"] or 0),
            row["unit"],
            row["source"],
        )
        for row in published(STUDY, "claims")
    }


@functools.cache
def observed(gpu: str, workload: str, quantity: str) -> tuple[float, float]:
    """Return the range of a time or share that the text states; of a bound, the bound twice."""
    [row] = [
        r
        for r in published(STUDY, "micro_observations")
        if (r["gpu"], r["workload"], r["quantity"]) == (gpu, workload, quantity)
    ]
    high = float(row["value_high"])
    return float(row["value_low"] or high), high


def sends() -> dict[str, float]:
    """Return seconds of blocking sends on mi50, by block: as they are, and with block 0 raised to 40 kB."""
    names = {"0": "BL Testany send, block 0 (8 B, eager)", "1": "BL Testany send, block 1 (first rendezvous)"}
    raised = {f"raised {k}": f"same, block 0 raised to 40 kB: send block {k}" for k in range(3)}
    return {key: 1e-6 * observed("mi50", "M", name)[0] for key, name in (names | raised).items()}


def sizes(workload: str) -> list[int]:
    """Return the bytes of each block's buffer."""
    return [int(row["bytes"]) for row in published(STUDY, "workload_blocks") if row["workload"] == workload]


def workload_names() -> list[str]:
    """Return the workloads, smallest first."""
    return [row["workload"] for row in published(STUDY, "workloads")]


@dataclass(frozen=True)
class Headline:
    """A stated speed-up over the fastest baseline; patterns: of the full names of its variants.

    least: true if it belongs to the slowest of several variants.
    """

    gpu: str
    workload: str
    text: str
    patterns: tuple[str, ...]
    least: bool
    speedup: float

    def is_of(self, variant: str) -> bool:
        """Return whether it is stated of a variant."""
        return any(fnmatch.fnmatch(variant, pattern) for pattern in self.patterns)


def headlines() -> list[Headline]:
    """Return the stated speed-ups."""
    return [
        Headline(
            row["gpu"],
            row["workload"],
            row["variant"],
            _patterns(row["variant"]),
            "(low)" in row["variant"],
            float(row["speedup"]),
        )
        for row in published(STUDY, "headline_speedups")
    ]


def _patterns(text: str) -> tuple[str, ...]:
    if "baseline" in text:
        return ("baseline:*,noncoherent",)
    flags = {"task queue": "queue", "per-block": "channel"}
    channels: Iterable[str] = [word for name, word in flags.items() if name in text] or ["*"]
    buffer = "device" if "memcpy" in text else "pinned" if "pinned" in text else "*"
    send = "nonblocking" if "NB" in text else "*"
    return tuple(f"taskqueue:{channel},{buffer},{send}" for channel in channels)
