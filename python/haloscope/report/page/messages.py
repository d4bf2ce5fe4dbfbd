"""The section on messages: times and rates over sizes, and the segments of a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from haloscope import bridge
from haloscope.model.profile import Profile
from haloscope.records.curves import group_curves
from haloscope.report import microbench_report
from haloscope.report.microbench import Chart as Lines
from haloscope.report.page import Chart, Section, Table, label
from haloscope.report.page.marks import SYMBOLS

OTHER_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#9d755d")


def section(found: Sequence[dict], profile: Profile | None) -> Section:
    """Return the charts of micro-benchmarks, and of the network of a profile."""
    table = group_curves(found)
    charts = (
        [_chart(lines, microbench_report.title(table)) for lines in microbench_report.charts(table)] if table else []
    )
    if profile and (segments := _segments(profile)) is not None:
        charts.append(segments)
    return Section("Messages", [], charts)


def _chart(lines: Lines, basis: str) -> Chart:
    caption = f"Measured: {basis}. {lines.of}."
    return Chart(lines.title, caption, _traces(lines.lines), _layout(lines.x, lines.unit), _table(lines.x, lines.lines))


def _traces(lines: Mapping[str, Mapping[Any, float]], mode: str = "lines+markers") -> list[dict]:
    colours = {transport.name: transport.colour for transport in bridge.transports()}
    return [
        {
            "type": "scatter",
            "mode": mode,
            "name": label(name),
            "x": list(points),
            "y": list(points.values()),
            "marker": {"symbol": SYMBOLS[i % len(SYMBOLS)], "size": 7},
            "line": {"color": colours.get(name.partition(":")[0], OTHER_COLOURS[i % len(OTHER_COLOURS)])},
            "customdata": [name] * len(points),
        }
        for i, (name, points) in enumerate(lines.items())
    ]


def _layout(x: str, y: str) -> dict:
    return {"xaxis": {"title": {"text": x}, "type": "log"}, "yaxis": {"title": {"text": y}, "type": "log"}}


def _table(x: str, lines: Mapping[str, Mapping[Any, float]]) -> Table:
    places = sorted({place for points in lines.values() for place in points})
    return Table([x, *lines], [[place, *(points.get(place) for points in lines.values())] for place in places])


def _segments(profile: Profile) -> Chart | None:
    """Return the times of a message by the fitted segments of a profile, a line per distance of the ranks."""
    classes = profile.data.get("network", {}).get("classes", {})
    lines = {
        f"in a {name}" if name != "network" else "between nodes": _line(c["segments"]) for name, c in classes.items()
    }
    if not lines:
        return None
    caption = f"Fitted: segments of profile {profile.name}, {profile.data['origin']}."
    layout = _layout("bytes of a message", "us")
    return Chart("A message by the profile", caption, _traces(lines, "lines"), layout, _table("bytes", lines))


def _line(segments: Sequence[dict]) -> dict[float, float]:
    """Return microseconds at both ends of each segment."""
    found = {}
    for segment in segments:
        low = max(segment["from_bytes"], 1.0)
        high = segment["to_bytes"] if segment["to_bytes"] is not None else max(low * 16, 1 << 22)
        for size in (low, high * 0.999):
            found[size] = 1e6 * (segment["latency_s"] + size * segment["per_byte_s"])
    return found
