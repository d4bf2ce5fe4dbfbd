"""`haloscope doctor` for readers: a table of checks, and the number of checks with each verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from haloscope.measure import doctor
from haloscope.report import tables


def document(checks: Sequence[doctor.Check]) -> list[dict]:
    """Return checks as plain data."""
    return [dataclasses.asdict(check) for check in checks]


def markdown(checks: Sequence[doctor.Check]) -> str:
    """Return checks as a table, with their number by verdict below."""
    lines = [[check.name, check.verdict, check.found, check.remedy] for check in checks]
    table = tables.markdown(lines, ["check", "verdict", "found", "what to do"])
    verdicts = (doctor.BROKEN, doctor.WARNING, doctor.OK, doctor.NOT_HERE)
    counts = [f"{sum(check.verdict == verdict for check in checks)} {verdict}" for verdict in verdicts]
    return f"{table}\n\n{', '.join(counts)}"
