"""One sentence of advice from measured choices: those significantly faster than the plainest exchange, per grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

from haloscope.records import stats
from haloscope.records.rows import Row, speedup
from haloscope.records.text import cell, listed

LEAST_LAUNCHES = 8  # of nine equal choices, one is reported as faster in some 15 % of cases with 6, some 7 % with 8
LARGE_POINTS = 1 << 20

Group = tuple[Sequence[Row], Row]  # choices measured on one grid, and the one that speed-ups refer to


def conclude(groups: Sequence[Group]) -> str:
    """Return one sentence that names the choice to use per grid, and the grids for which the plainest one suffices."""
    launches = min(len(row.launches) for rows, _ in groups for row in rows)
    if launches < LEAST_LAUNCHES:
        return f"{launches} launch{'es' * (launches > 1)} cannot tell choices apart for sure: {LEAST_LAUNCHES} can."
    simplest = f"the simplest exchange, {groups[0][1].request['strategy']}, is as good as any, as far as this can tell"
    winners, undecided = sort_out(groups)
    if not winners:
        return f"Here, {simplest}."
    advice = listed([f"{choice} for {listed(places)}" for choice, places in winners.items()])
    rest = f"; for {listed(undecided)} {simplest}" if undecided else ""
    return f"Here, use {advice}{rest}."


def sort_out(groups: Sequence[Group]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the grids on which each winner won, with its speed-ups, and the grids without a winner."""
    winners: dict[str, list[str]] = {}
    undecided = []
    for rows, base in groups:
        if found := find_faster(rows, base):
            row, gain = found
            than = "" if winners else f" as {base.request['strategy']}"
            place = f"{name_grid(base)} ({gain.value:.2f} times as fast{than})"
            winners.setdefault(name_difference(row, base), []).append(place)
        else:
            undecided.append(name_grid(base))
    return winners, undecided


def find_faster(rows: Sequence[Row], base: Row) -> tuple[Row, stats.Estimate] | None:
    """Return the choice with the largest speed-up over `base` among the significantly faster ones, None without any.

    The intervals are widened by the number of choices compared: the largest of many speed-ups is often large by chance.
    """
    rivals = [row for row in rows if row is not base and row.verification == "passed" and not row.oversubscribed]
    confidence = 1 - (1 - stats.CONFIDENCE) / max(len(rivals), 1)
    ordered = sorted(rivals, key=lambda row: stats.middle_ratio(base.launches, row.launches), reverse=True)
    gains = ((row, speedup(row, base, confidence)) for row in ordered)
    faster = (pair for pair in gains if stats.verdict_text(pair[1], "faster", "slower") == "faster")
    return next(faster, None)


def name_difference(row: Row, base: Row) -> str:
    """Return the differences of a choice from the plain one: the strategy by its name, the rest as options."""
    request, plain = row.request, base.request
    words = [request["strategy"]] if request["strategy"] != plain["strategy"] else []
    axes = ("process_grid", "schedule", "depth", "substeps")
    changed = [axis for axis in axes if request.get(axis) not in (None, plain.get(axis))]
    return " ".join(words + [f"--{axis.replace('_', '-')} {cell(request[axis])}" for axis in changed])


def name_grid(row: Row) -> str:
    """Return words for a grid of this kind: `large 2D grids like 2048x2048`."""
    cells = row.request["cells"]
    size = "large" if math.prod(cells) >= LARGE_POINTS else "small"
    return f"{size} {len(cells)}D grids like {cell(cells)}"
