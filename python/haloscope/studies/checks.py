"""Results recomputed from a paper's published data, each compared with a bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
    """The output of `haloscope study NAME --replay`, the checks behind it, and the results without a bar.

    documented: the checks that are known to miss their bar, each with the reason.
    """

    text: str
    checks: tuple[Check, ...]
    reports: tuple[Report, ...] = ()
    documented: Mapping[str, str] = field(default_factory=dict)

    @property
    def missed(self) -> tuple[Check, ...]:
        """The checks whose bar was not reached."""
        return tuple(check for check in self.checks if check.state == MISSED)

    @property
    def surprises(self) -> tuple[str, ...]:
        """The results that differ from the documentation: misses that it lacks, and documented ones that are none."""
        missed = {check.what for check in self.missed}
        return tuple(sorted(missed ^ set(self.documented)))

    def conclusion(self) -> str:
        """Return the last line of the output: counts of bars, the documented misses with reasons, and surprises."""
        parts = [summary(self.checks)]
        if self.documented:
            parts.append(f"Documented misses: {'; '.join(f'{name} ({why})' for name, why in self.documented.items())}.")
        if self.surprises:
            parts.append(f"NOT as documented: {'; '.join(self.surprises)}.")
        return " ".join(parts)


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
    return f"{len(checks) - missed} of {len(checks)} results reach their bar{f', {missed} miss it' if missed else ''}."
