"""Samples: the results of parsers of benchmark outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from haloscope import bridge
from haloscope.records import patterns


@dataclass(frozen=True)
class Sample:
    """One time: seconds of the operation that `key` (records/patterns.py) times.

    bytes: of a message, of a rank's part in a collective, of an array. groups: of ranks that work at the same time.
    threads: of a benchmark of memory, else 0.
    """

    key: str
    bytes: int
    seconds: float
    ranks: int = 1
    groups: int = 1
    threads: int = 0

    @property
    def pattern(self) -> str:
        """The pattern that is measured."""
        return next(p.name for p in patterns.ALL if any(m.key == self.key for m in p.measures))

    @property
    def apart(self) -> bool:
        """True if it has a separate record: only patterns of pairs share one."""
        return patterns.KIND_OF[self.key] != patterns.PAIRS

    @property
    def group(self) -> tuple:
        """The common properties of the samples of one record."""
        return self.ranks, self.groups, self.threads, self.pattern if self.apart else ""


@dataclass
class Output:
    """The content of a text. program: name and version. notes: skipped parts. verification: passed, failed, off."""

    program: str
    samples: list[Sample] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    verification: str = "off"


def number(word: str, line: int) -> float:
    """Return a number of bytes, processes or microseconds. Raises ValueError, with the line, for any other word."""
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    bound = bridge.bounds()["count"]
    if not bound.least <= value <= bound.most:
        raise ValueError(f"line {line} has '{word[:40]}' where a number from {bound.least:g} to {bound.most:g} belongs")
    return value


def seconds_of(us: float) -> float:
    """Return the seconds of microseconds printed with two decimals.

    0.00 is a time shorter than that; half of the last digit is the best guess.
    """
    return max(us, 0.005) / 1e6


def whole(word: str, line: int) -> int:
    """Return a whole number. Raises ValueError as `number` does."""
    return int(number(word, line))
