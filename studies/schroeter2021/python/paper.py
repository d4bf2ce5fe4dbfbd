"""Lines for the figures of the thesis: run times of each comparison here, and ratios to p2p.

The thesis prints its bars without numbers, so that no run stands next to a printed value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from haloscope.records import stats
from haloscope.studies import Options
from haloscope.studies.paper_panels import HERE, Line
from haloscope_studies.schroeter2021 import cases, precision, report
from haloscope_studies.schroeter2021.report import Run

RANKS = re.compile(r", \d+ ranks?\b( on \d+ cores?)?")


def lines(found: Sequence[dict], options: Options) -> dict[str, list[Line]]:
    """Return the lines of each panel: a panel for each comparison, its name without ranks."""
    made: dict[str, dict[str, Line]] = {}
    for comparison, runs in report.measured(found, options):
        panel = made.setdefault(f"{comparison.topic}: {RANKS.sub('', comparison.label)}", {})
        for run in runs:
            known = panel.get(run.name, Line(run.name, {}, HERE))
            points = {**known.points, _place(run, options): run.estimate.value}
            panel[run.name] = Line(run.name, points, HERE, {**known.ends, _place(run, options): _ends(run.estimate)})
    return {name: list(panel.values()) for name, panel in made.items()} | {"ratios": _ratios(found, options)}


def _place(run: Run, options: Options) -> str:
    """Return ranks, hosts, lines and iterations of a run; to a precision, the sequential program's."""
    lines_of_grid = precision.lines(cases.interlines(run.case, options))
    return f"{run.case.ranks} ranks, {run.where},\n{lines_of_grid} lines, {cases.iterations(run.case, options)} it."


def _ratios(found: Sequence[dict], options: Options) -> list[Line]:
    ratios = report.ratios_to_p2p(found, options)
    made = []
    for name in ("rma", "shared"):
        own = {RANKS.sub("", label): by[name] for label, by in ratios if name in by}
        made.append(Line(name, {x: e.value for x, e in own.items()}, HERE, {x: _ends(e) for x, e in own.items()}))
    return made


def _ends(e: stats.Estimate) -> tuple[float, float]:
    """Return the ends of an interval; the value itself where one launch has none."""
    return (e.low, e.high) if e.launches > 1 else (e.value, e.value)
