"""The section on two record files: the ratio of times of each configuration that both have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from haloscope.records import RecordFile, stats
from haloscope.records.rows import Row
from haloscope.records.text import count_of
from haloscope.report import tables
from haloscope.report.page import Chart, Section, Table, content, label, surroundings
from haloscope.report.page.choices import basis
from haloscope.report.page.marks import MOST_BARS, colour_of, height_of, with_intervals
from haloscope.terminal import echo


def section(pairs: Sequence[tuple[Row, Row]], a: str, b: str) -> Section:
    """Return the ratios A over B of matched rows, with the count of differences from 1. a, b: names of files."""
    ratios = [stats.ratio_of_launches(one.launches, other.launches) for one, other in pairs]
    verdicts = [tables.verdict(one, other, ratio) for (one, other), ratio in zip(pairs, ratios, strict=True)]
    lines = [
        [one.id, one.step.value, other.step.value, ratio.value, ratio.low, ratio.high, verdict]
        for (one, other), ratio, verdict in zip(pairs, ratios, verdicts, strict=True)
    ]
    sure = sum(ratio.low > 1 for ratio in ratios), sum(ratio.high < 1 for ratio in ratios)
    words = f"Of {count_of(len(pairs), 'configuration')} in both, {sure[0]} are faster in B, {sure[1]} in A"
    rest = f"{len(pairs) - sum(sure)} cannot be distinguished."
    columns = ["configuration", "A (s)", "B (s)", "A/B", "low", "high", "verdict"]
    return Section(f"{a} over {b}", [f"{words}; {rest}"], [_chart(pairs, ratios, Table(columns, lines))])


def write_requested(path: Path | None, pairs: Sequence[tuple[Row, Row]], files: Sequence[RecordFile]) -> None:
    """Write the page about two record files that a command was asked for, if any, and print the line that names it."""
    if path is not None:
        found = [record for file in files for record in file.records]
        parts = [section(pairs, *(str(file.path) for file in files)), surroundings.section(found)]
        echo(content.write_sections(path, content.title(found), parts))


def _chart(pairs: Sequence[tuple[Row, Row]], ratios: Sequence[stats.Estimate], table: Table) -> Chart:
    drawn = list(zip(pairs, ratios, strict=True))[:MOST_BARS]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "orientation": "h",
        "y": [label(one.id) for (one, _), _ in drawn],
        **with_intervals("x", [(ratio.value, ratio.low, ratio.high) for _, ratio in drawn]),
        "marker": {"color": [colour_of(one.request.get("strategy", "")) for (one, _), _ in drawn], "size": 9},
        "customdata": [one.id for (one, _), _ in drawn],
    }
    layout = {
        "xaxis": {"title": {"text": "time of A over time of B, 95 % interval; above 1: B is faster"}, "type": "log"},
        "yaxis": {"autorange": "reversed"},
        "shapes": [{"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "line": {"dash": "dot"}}],
        "showlegend": False,
    }
    more = f" The first {MOST_BARS} of {len(pairs)} are drawn." * (len(pairs) > MOST_BARS)
    caption = basis([one for one, _ in pairs]) + more
    return Chart("Ratios by configuration", caption, [trace], layout, table, height_of(len(drawn)))
