"""Results recomputed from a paper's published data, each compared with a bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haloscope.report import tables

MET, MISSED = "met", "MISSED"


@dataclass(frozen=True)
class Check:
    """One result: its checklist row, its name, the published value, ours, the bar, and the outcome.

    state: MET or MISSED. note: the basis of the result, or the reason why it misses.
    """

    id: str
    what: str
    published: str
    ours: str
    bar: str
    state: str
    note: str = ""


@dataclass(frozen=True)
class Report:
    """A result without a bar, and so without a checklist row: name, published value, ours, reason for no bar."""

    what: str
    published: str
    ours: str
    why: str


@dataclass(frozen=True)
class Replay:
    """The output of `haloscope study NAME --replay`, the checks behind it, and the results without a bar."""

    text: str
    checks: tuple[Check, ...]
    reports: tuple[Report, ...] = ()

    @property
    def missed(self) -> tuple[Check, ...]:
        """The checks whose bar was not reached."""
        return tuple(check for check in self.checks if check.state == MISSED)


def state(reached: bool) -> str:
    """Return MET or MISSED."""
    return MET if reached else MISSED


def table(checks: Sequence[Check]) -> str:
    """Return the checks as a Markdown table, one row each."""
    headers = ("row", "what", "published", "ours", "bar", "result", "note")
    return tables.markdown([[getattr(c, name) for name in Check.__dataclass_fields__] for c in checks], headers)


def report_table(reports: Sequence[Report]) -> str:
    """Return the results without a bar as a Markdown table, one row each."""
    headers = ("what", "published", "ours", "why no bar")
    return tables.markdown([[getattr(r, name) for name in Report.__dataclass_fields__] for r in reports], headers)


def summary(checks: Sequence[Check]) -> str:
    """Return one sentence with the numbers of bars met and missed."""
    missed = sum(c.state == MISSED for c in checks)
    return f"{len(checks) - missed} of {len(checks)} results reach their bar, {missed} miss it."
