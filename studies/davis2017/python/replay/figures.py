"""The study's figures redrawn: one file for its scaling, its model, its variants, its solver and messages.

The same panels show local measurements, only at the same cells and number of processing elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from haloscope.report import figures
from haloscope_studies.davis2017.replay.panels import ALSO, HERE, MEASURED, MODEL, OURS, Panel, Series, sheets

COLOURS = ("#4c78a8", "#e4894b", "#54a27a", "#d1495b", "#b279a2", "#8c6d31", "#9d9da1", "#2a9d8f", "#c9a227", "#5f4b8b")
STYLES: dict[str, dict[str, Any]] = {
    MEASURED: {"linestyle": "-", "marker": "o", "markersize": 3.5},
    ALSO: {"linestyle": "-", "marker": "^", "markersize": 4, "linewidth": 0.7},
    MODEL: {"linestyle": "--", "marker": "x", "markersize": 5, "linewidth": 1},
    OURS: {"linestyle": ":", "marker": "+", "markersize": 6, "linewidth": 1},
    HERE: {"linestyle": "", "marker": "D", "markersize": 5.5, "markeredgecolor": figures.INK, "zorder": 5},
}
MEANING = {
    MEASURED: "measured by the study",
    MODEL: "the study's model",
    OURS: "our model of the study's runs",
    HERE: "measured here, same cells and PEs",
}
TITLES = {
    "scaling": "Scaling",
    "model": "The model against measurements",
    "variants": "Variants A to L",
    "solver": "Conjugate gradients; messages",
}
PLACES = {"left": 0.045, "right": 0.99, "bottom": 0.13, "top": 0.905, "wspace": 0.17, "hspace": 0.54}
WIDE = 20  # characters of a label that leaves room for two in a row
ASIDE = 0.2  # of the distance of two names: between the points of two lines
CROWD = 20  # points from which a line has no markers


def draw(here: Mapping[str, Sequence[Series]], machine: str, stem: Path) -> list[Path]:
    """Draw all sheets as STEM-NAME.svg and .png. here: lines measured here, by panel; machine: their machine.

    Returns the files written.
    """
    files = []
    for name in sheets():
        files += draw_sheet(name, here, machine, stem.with_name(f"{stem.name.partition('.')[0]}-{name}"))
    return files


def draw_sheet(name: str, here: Mapping[str, Sequence[Series]], machine: str, stem: Path) -> list[Path]:
    """Draw one sheet, as `draw` does; stem: the complete stem of its files."""
    panels = sheets()[name]
    mine = [s for key in panels for s in here.get(key, ())]
    with figures.style():
        figure, axes = plt.subplots(2, 3, figsize=(17, 11), gridspec_kw=PLACES)
        for place, (key, panel) in zip(axes.flat, panels.items(), strict=True):
            draw_panel(place, panel, here.get(key, ()))
        _explain(figure, [s for panel in panels.values() for s in panel.series] + mine)
        title = f"{TITLES[name]}: Davis 2017 redrawn" + f"; measured here: {machine}" * bool(mine)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=figures.PALE)
        return figures.save(figure, stem)


def draw_panel(axes: Axes, panel: Panel, here: Sequence[Series] = ()) -> None:
    """Draw one panel's lines, the local measurements on top."""
    for name in panel.log:
        getattr(axes, f"set_{name}scale")("log", **({"base": 2} if name == "x" else {}), nonpositive="mask")
    names = list(dict.fromkeys(x for s in panel.series for x in s.points if isinstance(x, str)))
    labelled: set[str] = set()
    for number, series in enumerate([*panel.series, *here]):
        places = [names.index(x) + ASIDE * number if isinstance(x, str) else x for x in series.points]
        _line(axes, series, places, "_" if series.label in labelled or series.source == HERE else series.label)
        labelled.add(series.label)
    if names:
        axes.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    if "y" not in panel.log:
        axes.axhline(panel.level, color=figures.INK, linewidth=0.8)
    _frame(axes, panel)


def _line(axes: Axes, series: Series, places: Sequence[float], label: str) -> None:
    """Draw a line and its band, or points and their ranges: over names, and of local measurements."""
    style, colour = dict(STYLES[series.source]), COLOURS[series.colour]
    apart = series.source == HERE or any(isinstance(x, str) for x in series.points)
    if apart:
        style["linestyle"] = ""
    if len(places) > CROWD:
        style["marker"] = ""
    axes.plot(places, list(series.points.values()), color=colour, label=label, **style)
    if series.ends:
        low, high = zip(*(series.ends[x] for x in series.points), strict=True)
        if apart:
            axes.vlines(places, low, high, color=colour, linewidth=1)
        else:
            axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)


def _frame(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", fontweight="bold", fontsize=11, pad=20)
    axes.text(0, 1.02, panel.printed, transform=axes.transAxes, fontsize=8, color=figures.PALE)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(True, axis="y", color=figures.GRID)
    axes.set_axisbelow(True)
    if "x" in panel.log:
        axes.xaxis.set_major_formatter("{x:.0f}")
    longest = max(len(s.label) for s in panel.series)
    below: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (-0.04, -0.13), "ncols": 2 if longest > WIDE else 3}
    axes.legend(frameon=False, fontsize=8, columnspacing=1.2, **(below if panel.x else {}))


def _explain(figure: Figure, drawn: Sequence[Series]) -> None:
    """Explain the kinds of lines of a sheet below its panels."""
    used = {series.source for series in drawn}
    lines = [Line2D([], [], color=figures.PALE, label=text, **STYLES[s]) for s, text in MEANING.items() if s in used]
    figure.legend(handles=lines, loc="lower left", ncols=len(lines), frameon=False, fontsize=9)
