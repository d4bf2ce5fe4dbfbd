"""Results recomputed from a paper's published data, each held against a bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haloscope.report import tables

MET, MISSED, EXCEPTION = "met", "MISSED", "exception"


@dataclass(frozen=True)
class Check:
    """One result: the checklist row it belongs to, what it is, the published value, ours, the bar, and the outcome.

    state: MET, MISSED, or EXCEPTION where the paper contradicts itself or does not print what is needed; `note` says why.
    """

    id: str
    what: str
    published: str
    ours: str
    bar: str
    state: str
    note: str = ""


@dataclass(frozen=True)
class Replay:
    """What `haloscope study NAME --replay` prints, and the checks behind it."""

    text: str
    checks: tuple[Check, ...]

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


def summary(checks: Sequence[Check]) -> str:
    """Return one sentence: how many bars were met, how many missed, how many the paper's own defects leave open."""
    counts = {name: sum(c.state == name for c in checks) for name in (MET, MISSED, EXCEPTION)}
    return (
        f"{counts[MET]} of {len(checks)} results reach their bar, {counts[MISSED]} miss it, {counts[EXCEPTION]} are "
        f"exceptions that defects of the source leave open."
    )
