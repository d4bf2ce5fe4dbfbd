"""Marks of panels by kind: lines, bars, boxes, maps of cells, timelines; and looks, one for each subject.

Colours can be distinguished by colour-blind readers (sets of Okabe and Ito, and of Tol). Each mark has the source of
its line as `gid`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from haloscope.report import figures
from haloscope.studies.paper_panels import HERE, MODEL, OURS, PRINTED, Line, Panel, Paper, Place

COLOURS = tuple(
    "#" + digits
    for digits in (
        *("0072b2", "d55e00", "009e73", "cc79a7", "e69f00", "56b4e9"),
        *("882255", "8a8a8a", "999933", "332288", "44aa99", "1f2933"),
    )
)
MARKS, PATTERNS = "os^Dv<P>Xp", ("", "///", "...", "\\\\\\", "xx", "--", "oo", "++", "|||", "**")
STYLES: dict[str, dict[str, Any]] = {
    PRINTED: {"linestyle": "-", "linewidth": 1.2, "markersize": 4},
    MODEL: {"linestyle": "--", "linewidth": 1, "markersize": 5, "fillstyle": "none"},
    OURS: {"linestyle": ":", "linewidth": 1, "markersize": 4, "fillstyle": "none"},
    HERE: {"linestyle": "-.", "linewidth": 0.8, "markersize": 6, "markeredgecolor": figures.INK},
}
CROWD = 20  # most marks of a line
MOST_PLACES = 16  # of a logarithmic axis with ticks at its places, those that are apart
APART = 1 / 13  # of the length of a logarithmic axis: least distance of its ticks
MOST_NUMBERS = 150  # cells of a map that are labelled
FACTOR, DECADES = 4.0, 50.0  # largest over smallest value of a logarithmic axis: ticks at 1, 2, 5; at powers of ten


class Looks:
    """Colours, marks and patterns by subject and detail, which are the same in all panels of a paper."""

    def __init__(self, paper: Paper) -> None:
        self.subjects = {subject: number for number, subject in enumerate(paper.order)}
        self.details: dict[str, list[str]] = {}

    def numbers(self, line: Line) -> tuple[int, int]:
        """Return the number of a line's colour, and of its mark and pattern."""
        subject = self.subjects.setdefault(line.subject, len(self.subjects))
        details = self.details.setdefault(line.subject, [])
        if line.label not in details:
            details.append(line.label)
        return subject % len(COLOURS), subject + subject // len(COLOURS) + details.index(line.label)

    def of(self, line: Line) -> dict[str, Any]:
        """Return colour and mark of a line."""
        colour, mark = self.numbers(line)
        return {"color": COLOURS[colour], "marker": MARKS[mark % len(MARKS)]}

    def dress(self, patch: Patch, line: Line) -> None:
        """Give a bar colour, pattern and edge."""
        colour, mark = self.numbers(line)
        patch.set_facecolor(COLOURS[colour])
        patch.set_edgecolor(figures.INK if line.source == HERE else "white")
        patch.set_hatch(PATTERNS[mark % len(PATTERNS)])
        patch.set_hatch_linewidth(0.4)


def places_of(lines: Sequence[Line]) -> list[Place]:
    """Return the x of all lines: numbers sorted, names as they come."""
    found = list(dict.fromkeys(x for line in lines for x in line.points))
    return found if any(isinstance(x, str) for x in found) else sorted(found, key=float)


def draw_lines(axes: Axes, panel: Panel, lines: Sequence[Line], looks: Looks) -> None:
    """Draw lines over numbers; over names, and of runs here next to printed ones, marks alone."""
    names = [x for x in places_of(lines) if isinstance(x, str)]
    has_printed = any(line.source == PRINTED for line in lines)
    _scale(axes, panel, lines)
    for number, line in enumerate(lines):
        look, style = looks.of(line), dict(STYLES[line.source])
        order = list(line.points) if names else sorted(line.points, key=float)
        places = {x: names.index(x) + 0.6 * number / len(lines) if isinstance(x, str) else x for x in order}
        if names or (line.source == HERE and has_printed):
            style["linestyle"] = ""
        look["markevery"] = 1 + len(order) // CROWD
        _ends(axes, line, places, look["color"])
        axes.plot(list(places.values()), [line.points[x] for x in order], gid=line.source, **look, **style)
    if names:
        axes.set_xticks(range(len(names)), names, rotation=20, ha="right", rotation_mode="anchor")
    if panel.level is not None:
        axes.axhline(panel.level, color=figures.INK, linewidth=0.8)
    axes.grid(True, axis="y")


def draw_bars(axes: Axes, panel: Panel, lines: Sequence[Line], looks: Looks) -> None:
    """Draw horizontal bars; marks where the axis is logarithmic, which has no zero for a bar to begin at."""
    for line, places in _rows(axes, lines):
        values = list(line.points.values())
        if panel.log:
            edge: dict[str, Any] = {"markeredgecolor": figures.INK} if line.source == HERE else {}
            axes.plot(
                values, list(places.values()), gid=line.source, linestyle="", markersize=5, **looks.of(line), **edge
            )
        else:
            for bar in axes.barh(list(places.values()), values, 0.75 / len(lines), gid=line.source):
                looks.dress(bar, line)
        for x, (low, high) in line.ends.items():
            axes.plot([low, high], [places[x]] * 2, color=figures.INK, linewidth=0.9, gid=f"{line.source} ends")
    if panel.log:
        _scale(axes, panel, lines, swapped=True)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
    if panel.level is not None:
        axes.axvline(panel.level, color=figures.INK, linewidth=0.8)
    axes.grid(True, axis="x")


def draw_boxes(axes: Axes, panel: Panel, lines: Sequence[Line], looks: Looks) -> None:
    """Draw least to most as a line, the quartiles as a box, the median as a mark."""
    names = places_of(lines)
    axes.use_sticky_edges = False  # which would cut marks at the ends of boxes
    _scale(axes, panel, lines)
    for number, line in enumerate(lines):
        look = looks.of(line)
        places = {x: names.index(x) + 0.8 * ((number + 0.5) / len(lines) - 0.5) for x in line.points}
        _ends(axes, line, places, look["color"])
        for x, (low, high) in line.quarters.items():
            axes.bar(places[x], high - low, 0.6 / len(lines), low, color=look["color"], alpha=0.4, gid=line.source)
        axes.plot(
            list(places.values()), list(line.points.values()), linestyle="", markersize=3, gid=line.source, **look
        )
    axes.set_xticks(range(len(names)), [_name(x) for x in names])
    axes.grid(True, axis="y")


def draw_heatmap(axes: Axes, panel: Panel, lines: Sequence[Line], _looks: Looks) -> None:
    """Draw a cell per value: a row for each line, a column for each x."""
    names = places_of(lines)
    cells = [[line.points.get(x, float("nan")) for x in names] for line in lines]
    norm = "log" if panel.log else "linear"
    image = axes.imshow(cells, cmap="cividis", norm=norm, aspect="auto", gid=lines[0].source)
    for y, line in enumerate(lines if len(names) * len(cells) <= MOST_NUMBERS else ()):
        for x, value in ((names.index(name), value) for name, value in line.points.items()):
            colour = "white" if image.to_rgba(np.array([value]))[0][1] < 0.5 else figures.INK
            axes.text(x, y, f"{value:.3g}", color=colour, ha="center", va="center", fontsize=7)
    axes.set_xticks(range(len(names)), [_name(x) for x in names])
    axes.set_yticks(range(len(cells)), [line.label for line in lines])


def draw_timeline(axes: Axes, _panel: Panel, lines: Sequence[Line], looks: Looks) -> None:
    """Draw the span of each point, from its least to its most, in a row for each x."""
    for line, places in _rows(axes, lines):
        spans = [(places[x], high - low, low) for x, (low, high) in line.ends.items()]
        for place, length, low in spans:
            axes.barh(place, length, 0.75 / len(lines), low, color=looks.of(line)["color"], gid=line.source)
    axes.grid(True, axis="x")


KINDS: dict[str, Callable[[Axes, Panel, Sequence[Line], Looks], None]] = {
    "lines": draw_lines,
    "bars": draw_bars,
    "box": draw_boxes,
    "heatmap": draw_heatmap,
    "timeline": draw_timeline,
}
SIDEWAYS = ("bars", "heatmap", "timeline")  # kinds whose names stand at the left


def _name(place: Place) -> str:
    return place if isinstance(place, str) else f"{place:g}"


def _rows(axes: Axes, lines: Sequence[Line]) -> list[tuple[Line, dict[Place, float]]]:
    """Return the heights of each line's points, a row of the axes for each x, the first one on top."""
    names = places_of(lines)
    axes.set_yticks(range(len(names)), [_name(x) for x in names])
    axes.set_ylim(len(names) - 0.45, -0.55)
    aside = [0.8 * ((number + 0.5) / len(lines) - 0.5) for number in range(len(lines))]
    return [(line, {x: names.index(x) + by for x in line.points}) for line, by in zip(lines, aside, strict=True)]


def _ends(axes: Axes, line: Line, places: Mapping[Place, Any], colour: str) -> None:
    kept = [x for x in places if x in line.ends]
    if kept:
        low, high = zip(*(line.ends[x] for x in kept), strict=True)
        axes.vlines([places[x] for x in kept], low, high, color=colour, linewidth=0.9, gid=f"{line.source} ends")


def _scale(axes: Axes, panel: Panel, lines: Sequence[Line], swapped: bool = False) -> None:
    """Make axes logarithmic: where a value is not positive, linear around 0."""
    for name in panel.log:
        values = sorted({float(v) for line in lines for x, y in line.points.items() for v in [y if name == "y" else x]})
        least = min((value for value in values if value > 0), default=1.0)
        side = {"x": "y", "y": "x"}[name] if swapped else name
        how: dict[str, Any] = {"value": "log"} if values[0] > 0 else {"value": "symlog", "linthresh": least}
        getattr(axes, f"set_{side}scale")(**how)
        if values[0] > 0:
            _label(getattr(axes, f"{side}axis"), values, name == "x")


def _apart(values: Sequence[float]) -> list[float]:
    """Return the values whose distance from the one before leaves room for a number on a logarithmic axis."""
    kept = [values[0]]
    for value in values[1:]:
        if math.log(value / kept[-1]) >= APART * math.log(values[-1] / values[0]):
            kept.append(value)
    return kept


def _label(axis: Axis, values: Sequence[float], at_places: bool) -> None:
    """Label a logarithmic axis at its few places, or with plain numbers where it spans no powers of ten."""
    if at_places and len(values) <= MOST_PLACES:
        axis.set_major_locator(FixedLocator(_apart(values)))
    elif values[-1] < FACTOR * values[0]:
        axis.set_major_locator(MaxNLocator(5))
    elif values[-1] < DECADES * values[0]:
        axis.set_major_locator(LogLocator(10, (1, 2, 5)))
    else:
        return
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
