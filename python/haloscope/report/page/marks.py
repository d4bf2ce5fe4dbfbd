"""Marks that figures of a page share: bars and their heights, intervals, colours and symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from haloscope import bridge
from haloscope.report.page import label

MOST_BARS = 24  # of a figure: the others are in its table
EDGE = "#7b8794"  # of bars and intervals, on light and dark paper
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "star", "x", "pentagon", "hexagon", "triangle-down")
PHASE_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d", "#ff9da6")
MEASURED = "median over launches with 95 % interval"


def ranked_bars(
    names: Sequence[str], times: Sequence[Sequence[float]], marks: Mapping[str, Any], unit: str, kind: str
) -> tuple[dict, dict]:
    """Return the trace and the layout of bars, first on top.

    times: value, low and high end of each, in the unit. kind: the origin of the values, such as MEASURED.
    """
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [label(name) for name in names],
        "marker": {**marks, "line": {"color": EDGE, "width": 1}},
        "customdata": list(names),
        "hovertemplate": f"%{{y}}: %{{x:.4g}} {unit}<extra></extra>",
        **with_intervals("x", times),
    }
    title = {"text": f"{unit}, {kind}"}
    axes = {"xaxis": {"title": title, "rangemode": "tozero"}, "yaxis": {"autorange": "reversed"}, "showlegend": False}
    return bars, axes


def height_of(bars: int, each: int = 24, around: int = 90) -> int:
    """Return the height of a figure of bars, in pixels. each: of a bar. around: of axes, and of a legend if any."""
    return around + each * max(bars, 3)


def with_intervals(axis: str, values: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the values of a trace along an axis, with their intervals. values: value, low and high end of each."""
    error = {"type": "data", "symmetric": False, "color": EDGE}
    error |= {"array": [high - value for value, _, high in values], "arrayminus": [v - low for v, low, _ in values]}
    return {axis: [value for value, _, _ in values], f"error_{axis}": error}


def colour_of(strategy: str) -> str:
    """Return the colour of a strategy's first transport, the same in every figure."""
    return transport_of(strategy)[1]


def transport_of(strategy: str) -> tuple[int, str]:
    """Return the number and the colour of the first transport of a strategy; of others the last ones."""
    word = strategy.partition("/")[2].split("+")[0].split(":")[0]
    known = bridge.transports()
    return next(((i, t.colour) for i, t in enumerate(known) if t.name == word), (len(known), "#777777"))
