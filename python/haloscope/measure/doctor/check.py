"""Results of examinations: checks with verdicts, and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haloscope.records.text import count_of

OK, WARNING, BROKEN, NOT_HERE = "ok", "warning", "broken", "not here"
LIMIT_S = 60.0  # for one start of mpiexec
LAUNCHER_FIRST = "repair the launcher first"


@dataclass(frozen=True)
class Check:
    """One tested subject: its verdict (ok, warning, broken, not here), the finding and the remedy."""

    name: str
    verdict: str
    found: str
    remedy: str = ""


def nothing_started(name: str) -> Check:
    """Return the check of a subject that could not be tested since no rank answered."""
    return Check(name, NOT_HERE, "nothing that the launcher started gave an answer", LAUNCHER_FIRST)


def size_of(count: float) -> str:
    """Format a number of bytes: `2 KiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def worst_of(checks: Sequence[Check]) -> Check:
    """Return the first of the gravest checks of several nodes, with the number of other nodes with this verdict."""
    gravest = min(checks, key=lambda c: (BROKEN, WARNING, NOT_HERE, OK).index(c.verdict))
    more = sum(c.verdict == gravest.verdict for c in checks) - 1
    text = gravest.found + (f" (and {count_of(more, 'node')} more)" if more else "")
    return Check(gravest.name, gravest.verdict, text, gravest.remedy)
