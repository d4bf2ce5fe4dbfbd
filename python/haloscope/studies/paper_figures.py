"""Figures of a paper, drawn from its printed data with local measurements: a file of several panels per sheet.

A panel without values is a frame with a sentence that names the missing part. Frames come last.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from haloscope.report import figures
from haloscope.studies.paper_marks import KINDS, SIDEWAYS, Looks
from haloscope.studies.paper_panels import HERE, MODEL, OURS, PRINTED, TEXT, Line, Panel, Paper, Sheet, comparable

MEANING = {
    PRINTED: "filled, full line: printed in the paper",
    MODEL: "open, dashed: the paper's model",
    OURS: "open, dotted: simulated or modelled here",
    HERE: "dark edge: measured here, with 95 % intervals or ranges",
}
COLUMNS = 3
WIDTH, LEFT, WIDE_LEFT, RIGHT = 5.6, 0.8, 2.1, 0.2  # of a panel and its margins; all lengths are inches
HIGH, LOW, LINE = 2.6, 0.9, 0.15  # axes with values, frames without, a line of small text
ABOVE, BELOW, GAP, TOP = 0.28, 0.55, 0.12, 0.75  # title, labels of x, between panels, title of the sheet
CHARACTERS = 96  # of a line of small text over the width of a panel
SOFTWARE = ("compiler ", "MPI ")  # parts of the origin that stand in the files' descriptions alone
RECORDS = "records of this study (--from)"


@dataclass(frozen=True)
class Drawn:
    """A panel with the lines to draw, and its caption."""

    panel: Panel
    lines: Sequence[Line]
    caption: Sequence[str]

    @property
    def left(self) -> float:
        """Left margin: wide where names stand there."""
        return WIDE_LEFT if self.lines and self.panel.kind in SIDEWAYS else LEFT

    @property
    def labels(self) -> dict[str, Line]:
        """Labels of the legend, each with its first line."""
        if self.panel.kind == "heatmap":
            return {}
        first = {line.label: line for line in reversed(self.lines)}
        return dict(reversed(first.items()))

    @property
    def columns(self) -> int:
        """Columns of the legend."""
        longest = max(map(len, self.labels), default=1)
        return max(1, CHARACTERS // (longest + 8))

    @property
    def tall(self) -> float:
        """Height of the axes."""
        return HIGH if self.lines else LOW

    @property
    def height(self) -> float:
        """Height of the panel."""
        legend = LINE * -(-len(self.labels) // self.columns)
        return ABOVE + LINE * len(self.caption) + self.tall + (BELOW + legend if self.lines else 0.1) + GAP


def draw(paper: Paper, others: Mapping[str, Sequence[Line]], origin: str, folder: Path) -> list[Path]:
    """Draw all sheets of a paper as SVG and PNG. others: more lines by name of panel; origin: of local measurements.

    Returns the files written. Errors: as `outputs.writing`. Cost: a second for two sheets.
    """
    looks = Looks(paper)
    with figures.style(), figures.described(origin):
        return [
            file
            for sheet in paper.sheets
            for file in figures.save(draw_sheet(paper, sheet, others, origin, looks), folder / sheet.name)
        ]


def draw_sheet(paper: Paper, sheet: Sheet, others: Mapping[str, Sequence[Line]], origin: str, looks: Looks) -> Figure:
    """Return the figure of one sheet, its panels in rows of COLUMNS, frames last."""
    drawn = [prepare(paper, panel, others.get(panel.name, ()), origin) for panel in sheet.panels]
    drawn.sort(key=lambda one: not one.lines)
    grid = [drawn[first : first + COLUMNS] for first in range(0, len(drawn), COLUMNS)]
    heights = [max(one.height for one in row) for row in grid]
    width, height = WIDTH * min(COLUMNS, len(drawn)), TOP + sum(heights)
    with figures.style():
        figure = plt.figure(figsize=(width, height))
        for number, row in enumerate(grid):
            for column, one in enumerate(row):
                top = height - TOP - sum(heights[:number]) - ABOVE - LINE * len(one.caption)
                wide = WIDTH - one.left - RIGHT
                box = ((WIDTH * column + one.left) / width, (top - one.tall) / height, wide / width, one.tall / height)
                draw_panel(figure.add_axes(box), one, looks)
        used = dict.fromkeys(line.source for one in drawn for line in one.lines)
        _write(figure, 0.3 / height, f"{paper.title}: {sheet.title}", fontsize=13, fontweight="bold")
        _write(figure, 0.55 / height, "; ".join(MEANING[source] for source in used), fontsize=8, color=figures.PALE)
    return figure


def _write(figure: Figure, below: float, text: str, **style: Any) -> None:
    figure.text(0.1 / figure.get_figwidth(), 1 - below, text, **style)


def prepare(paper: Paper, panel: Panel, others: Sequence[Line], origin: str) -> Drawn:
    """Return a panel with its lines and caption: paper, figure, tables and sample; origin of local values."""
    printed = paper.lines(panel)
    lines = [*printed, *comparable(printed, others)]
    sources = {line.source for line in lines}
    tables = paper.tables(panel) if sources & {PRINTED, MODEL} else ""
    where = "stated in the text" if tables == TEXT else f"table {tables}" * bool(tables)
    source = ", ".join(filter(None, [paper.title, f"figure {panel.figure}" * bool(panel.figure), where]))
    texts = [source + f"; {panel.about}" * bool(sources & {PRINTED, MODEL} and panel.about)]
    if HERE in sources:
        parts = origin.removeprefix("Measured on ").split("; ")
        texts.append(f"Here: {'; '.join(part for part in parts if not part.startswith(SOFTWARE))}")
    if panel.needs and lines:
        texts.append(f"{'The rest needs' if PRINTED in sources else 'The values of the paper need'} {panel.needs}.")
    return Drawn(panel, lines, [line for text in texts for line in textwrap.wrap(text, CHARACTERS)])


def draw_panel(axes: Axes, drawn: Drawn, looks: Looks) -> None:
    """Draw one panel, or the frame of an empty one with what it needs."""
    panel = drawn.panel
    for number, text in enumerate(reversed(drawn.caption)):
        _write_above(axes, drawn, 0.05 + LINE * number, text, fontsize=7, color=figures.PALE)
    _write_above(axes, drawn, 0.08 + LINE * len(drawn.caption), panel.title, fontsize=9.5, fontweight="bold")
    if not drawn.lines:
        axes.set(xticks=[], yticks=[])
        axes.spines[["top", "right"]].set_visible(True)
        needs = ", and ".join(filter(None, [RECORDS * bool(panel.name), panel.needs]))
        text = "\n".join(textwrap.wrap(f"needs {needs}", CHARACTERS - 20))
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=8)
        return
    KINDS[panel.kind](axes, panel, drawn.lines, looks)
    axes.tick_params(labelsize=7.5, which="both")
    along, up = (panel.y_label, panel.x_label) if panel.kind == "bars" else (panel.x_label, panel.y_label)
    axes.set_xlabel(along, fontsize=8)
    axes.set_ylabel(up, fontsize=8)
    _explain(axes, drawn, looks)


def _write_above(axes: Axes, drawn: Drawn, above: float, text: str, **style: Any) -> None:
    """Write a line of text above the axes, from the left edge of their panel."""
    place = (72 * (0.15 - drawn.left), 72 * above)
    axes.annotate(text, (0, 1), place, "axes fraction", textcoords="offset points", **style)


def _explain(axes: Axes, drawn: Drawn, looks: Looks) -> None:
    """Explain the lines below the axes."""
    wide, is_bar = WIDTH - drawn.left - RIGHT, drawn.panel.kind == "bars" and not drawn.panel.log
    handles: list[Any] = []
    for label, line in drawn.labels.items():
        if is_bar:
            handles.append(Patch(label=figures.legend_label(label)))
            looks.dress(handles[-1], line)
        else:
            handles.append(Line2D([], [], label=figures.legend_label(label), markersize=4, **looks.of(line)))
    place = ((0.1 - drawn.left) / wide, -(BELOW - 0.05) / HIGH)
    if handles:
        axes.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=place,
            borderaxespad=0,
            ncols=drawn.columns,
            fontsize=7,
            columnspacing=1,
            labelspacing=0.25,
        )
