"""The section on ranks: the seconds of each by phase, and when it was blocked."""

from __future__ import annotations

from collections.abc import Sequence

from haloscope.records.rows import Row, group_rows
from haloscope.report import tables, timeline
from haloscope.report.page import Chart, Section, Table
from haloscope.report.page.choices import basis
from haloscope.report.page.marks import PHASE_COLOURS, height_of

MOST_CHOICES, MOST_RANKS = 6, 64


def section(found: Sequence[dict]) -> Section:
    """Return the ranks of the choices whose records have timelines."""
    timed = [row for row in group_rows(found) if any("timeline" in record for record in row.records)]
    words = [f"Of {len(timed)} choices with timelines, the fastest {MOST_CHOICES} are drawn."]
    return Section("Ranks", words * (len(timed) > MOST_CHOICES), [_chart(row) for row in timed[:MOST_CHOICES]])


def _chart(row: Row) -> Chart:
    ranks = timeline.ranks_of(row.records)
    phases = [p for p in tables.PHASES if any(r["phases_s"].get(p) for r in ranks.values())]
    lines = [
        [rank, r["measured_s"], *(r["phases_s"].get(p, 0.0) for p in phases), timeline.blocked_s(r)]
        for rank, r in ranks.items()
    ]
    drawn = list(ranks.items())[:MOST_RANKS]
    traces: list[dict] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": phase,
            "y": [f"rank {rank}" for rank, _ in drawn],
            "x": [r["phases_s"].get(phase, 0.0) for _, r in drawn],
            "marker": {"color": PHASE_COLOURS[i % len(PHASE_COLOURS)]},
        }
        for i, phase in enumerate(phases)
    ]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "blocked",
            "y": [f"rank {rank}" for rank, _ in drawn],
            "x": [timeline.blocked_s(r) for _, r in drawn],
            "marker": {"symbol": "line-ns-open", "size": 16, "color": "#d1495b", "line": {"width": 3}},
        }
    )
    layout = {
        "barmode": "stack",
        "xaxis": {"title": {"text": "s, all repetitions"}},
        "yaxis": {"autorange": "reversed"},
    }
    columns = ["rank", "all (s)", *(f"{phase} (s)" for phase in phases), "blocked (s)"]
    more = f" The first {MOST_RANKS} of {len(ranks)} ranks are drawn." if len(ranks) > MOST_RANKS else ""
    caption = f"{basis([row])} A mark: the seconds for which the rank was blocked.{more}"
    height = height_of(len(drawn), each=26, around=150)
    return Chart(row.id, caption, traces, layout, Table(columns, lines), height)
