"""Lines for the figures of the thesis: next to printed values where a run has their side, ranks and iterations, and in
panels of their own.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from haloscope.records.rows import Row
from haloscope.studies.paper_panels import HERE, Line
from haloscope_studies.valen2023 import comparisons, timers

Rows = Mapping[tuple[int, str, int], Row]
PARTS = {"execution": "execution", "message": "messages", "desync": "desync", "pack": "pack", "unpack": "unpack"}
OF_ONE_SIDE = ("execution", "message")  # timers whose panels are of one side each


def lines(rows: Rows) -> dict[str, list[Line]]:
    """Return the lines of each panel. rows: by side, program and depth."""
    found: dict[str, list[Line]] = {}
    for side in dict.fromkeys(side for side, _, _ in rows):
        for program in comparisons.PROGRAMS:
            own = {depth: row for (n, p, depth), row in rows.items() if (n, p) == (side, program)}
            for part, name in PARTS.items() if own else ():
                found.setdefault(f"{name} here", []).append(_line(f"{program}, {side}", part, own))
            printed = {depth: row for depth, row in own.items() if comparisons.is_published(row)}
            for part in OF_ONE_SIDE if printed else ():
                found.setdefault(f"{PARTS[part]} {side}", []).append(_line(program, part, printed))
    return found | {"coverage here": _coverage(rows)}


def _line(label: str, part: str, rows: Mapping[int, Row]) -> Line:
    """Return a timer's seconds of a run by depth, a mean over launches, from least to most."""
    seconds = {
        float(depth): [times[part] for times in timers.timers_by_launch(row, statistics.mean).values()]
        for depth, row in rows.items()
    }
    points = {depth: statistics.mean(found) for depth, found in seconds.items()}
    return Line(label, points, HERE, {depth: (min(found), max(found)) for depth, found in seconds.items()})


def _coverage(rows: Rows) -> list[Line]:
    """Return the share of the ordered exchange that overlap hides, in percent, by depth."""
    tables = comparisons.tables_by_launch(rows).values()
    made = []
    for side in dict.fromkeys(side for side, _, _ in rows):
        values: dict[float, list[float]] = {}
        for table in tables:
            for phased, overlapped in comparisons.pairs([c for c in table.values() if c.side == side]):
                share = comparisons.coverage(phased, overlapped)
                if phased.exchange == "ordered" and share is not None:
                    values.setdefault(float(phased.depth), []).append(100 * share)
        ends = {depth: (min(found), max(found)) for depth, found in values.items()}
        made.append(Line(f"ordered, {side}", {d: statistics.mean(found) for d, found in values.items()}, HERE, ends))
    return made
