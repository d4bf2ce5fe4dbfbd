"""Figures for readers: the demo's results and scaling curves, as SVG and PNG."""

from __future__ import annotations

import contextlib
import contextvars
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter, LogFormatterSciNotation

from haloscope import bridge, outputs
from haloscope.records import stats
from haloscope.records.rows import Row, speedup
from haloscope.records.text import cell
from haloscope.report import conclusion, tables
from haloscope.terminal import shown

INK, PALE, GRID = "#1f2933", "#7b8794", "#e4e7eb"
SUBSTEPS_COLOURS = {"full": "#4c78a8", "shrink": "#54a27a", "blocked": "#d1495b"}
SUBSTEPS_WORDS = {
    "full": "full: every sub-step sweeps the whole halo",
    "shrink": "shrink: only what is still needed",
    "blocked": "blocked: sub-steps fused in cache",
}
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": PALE,
    "xtick.color": PALE,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 11,
    "grid.color": GRID,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "haloscope",
    "text.parse_math": False,  # texts may come from third parties, and are not formulas
}
SIGNED: dict[str, dict[str, Any]] = {
    ".svg": {"Creator": outputs.DRAWN, "Date": None},
    ".png": {"Software": outputs.DRAWN},
}  # by file extension
DOTS_PER_INCH = 160
MOST_LINES = 50  # of one text
MOST_DESCRIBED = 1000  # characters of a description
_DESCRIPTION = contextvars.ContextVar("_DESCRIPTION", default="")
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def style() -> AbstractContextManager[None]:
    """Return the context in which figures are drawn: this style, regardless of a matplotlibrc file in this folder."""
    return plt.style.context(["default", STYLE])


def legend_label(name: str) -> str:
    """Return a name for a legend, which leaves out all that begins with an underscore."""
    return f" {name}" if name.startswith("_") else name


@contextlib.contextmanager
def described(text: str) -> Iterator[None]:
    """Yield while all figures that are saved get a text as the description in their files; "": none."""
    token = _DESCRIPTION.set(text)
    try:
        yield
    finally:
        _DESCRIPTION.reset(token)


class _Powers(LogFormatterSciNotation):
    """Labels of logarithmic axes without formulas: 10\u207b\u00b3."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        label = re.sub(r"\$|\\mathdefault", "", super().__call__(x, pos)).replace(r"\times", "\u00d7")
        return re.sub(r"\^\{([-\d]+)\}", lambda power: power[1].translate(_SUPERSCRIPTS), label).strip("{}")


def demo(groups: Sequence[conclusion.Group], title: str, stem: Path) -> list[Path]:
    """Draw the demo's figure: bars of speed-ups for each grid, next to the depth curve of the grid with most depths.

    groups: per grid its rows and the row that speed-ups refer to. Returns the files written.
    """
    deepest = max(groups, key=lambda group: len({row.request["depth"] for row in group[0]}))
    others = [group for group in groups if group is not deepest]
    with style():
        figure = plt.figure(figsize=(12.5, 6.4), layout="constrained")
        left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.15, 1))[0]
        bars = left.subplots(len(others), height_ratios=[len(rows) + 2 for rows, _ in others], squeeze=False)[:, 0]
        for axes, group in zip(bars, others, strict=True):
            _speedup_bars(axes, *group)
        bars[-1].set_xlabel("speed-up over plain ordered/p2p, with 95 % intervals; bold: differs from 1")
        _depth_curve(right.subplots(), *deepest)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9, color=PALE)
        return save(figure, stem)


def scaling(series: Mapping[str, Sequence[tuple[int, float]]], title: str, weak: bool, stem: Path) -> list[Path]:
    """Draw seconds per step over ranks, a line per name, and the ideal of its first point. Returns the files written.

    series: (ranks, seconds) per name, at least one point each. weak: the ideal is constant, else inverse to the ranks.
    """
    unit, factor = tables.unit(seconds for points in series.values() for _, seconds in points)
    with style():
        figure, axes = plt.subplots(figsize=(8.0, 5.0), layout="constrained")
        for points in series.values():
            first, places = min(points), sorted(r for r, _ in points)
            ideal = [first[1] * factor * (1 if weak else first[0] / r) for r in places]
            axes.plot(places, ideal, color=GRID, linewidth=1, zorder=1)
        for name, points in series.items():
            ranks, seconds = zip(*sorted(points), strict=True)
            axes.plot(ranks, [s * factor for s in seconds], marker="o", markersize=4, label=legend_label(name))
        axes.set_xscale("log")
        if weak:
            axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
        else:
            axes.set_yscale("log")
        axes.yaxis.grid(True)
        axes.set_xlabel("ranks")
        axes.set_ylabel(f"simulated {unit} per step (pale: ideal)")
        axes.legend()
        axes.set_title(title)
        return save(figure, stem)


def _leave_empty_logarithms(axes: Axes) -> None:
    """Make a logarithmic axis linear where no value of its data is positive: Matplotlib refuses to draw it."""
    for axis, set_scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        if axis.get_scale() == "log" and not math.isfinite(axis.get_minpos()):
            set_scale("linear")


def _shown(text: str) -> str:
    """Return a text, which may come from third parties, as drawable lines: without control characters, and bounded."""
    return "\n".join(map(shown, text.split("\n", MOST_LINES)[:MOST_LINES]))


def _bound_labels(formatter: Formatter) -> None:
    """Make the labels of an axis drawable each time that Matplotlib formats them: drawing a figure does so again."""
    made = formatter.format_ticks
    formatter.format_ticks = lambda values: [  # type: ignore[method-assign]  # the axis keeps its formatter
        _shown(label) for label in made(values)
    ]


def _bound_texts(figure: Figure) -> None:
    """Make all texts of a figure drawable, and the labels of logarithmic axes plain text instead of formulas."""
    for text in figure.findobj(Text):
        text.set_text(_shown(text.get_text()))
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        transform: Any = axis.get_transform()  # logarithmic ones have a base
        if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
            axis.set_major_formatter(_Powers(transform.base))
        if isinstance(axis.get_minor_formatter(), LogFormatterSciNotation):
            axis.set_minor_formatter(_Powers(transform.base, labelOnlyBase=False))
        _bound_labels(axis.get_major_formatter())
        _bound_labels(axis.get_minor_formatter())


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG into one folder, close it and return the files. Errors: as `outputs.writing`."""
    try:
        outputs.refuse_foreign_figure(stem)
        _mend(figure)
        return [_save(figure, outputs.beside(stem, suffix)) for suffix in SIGNED]
    finally:
        plt.close(figure)


def _save(figure: Figure, file: Path) -> Path:
    metadata = dict(SIGNED[file.suffix])
    if text := _DESCRIPTION.get():
        metadata["Description"] = shown(text, MOST_DESCRIBED)
    with outputs.writing(file, outputs.FIGURE) as draft, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # texts that leave no space, or that the font cannot show
        figure.savefig(draft.buffer, format=file.suffix[1:], dpi=DOTS_PER_INCH, metadata=metadata)
    return file


def _mend(figure: Figure) -> None:
    """Make all texts drawable, and logarithmic axes without positive values linear."""
    for axes in figure.axes:
        _leave_empty_logarithms(axes)
    _bound_texts(figure)


def _error(e: stats.Estimate) -> list[list[float]]:
    return [[e.value - e.low], [e.high - e.value]]


def _label(row: Row, baseline: Row) -> str:
    request = row.request
    split = f" · {cell(request['process_grid'])}" * (request["process_grid"] != baseline.request["process_grid"])
    depth = f" · depth {request['depth']}" if request["depth"] > 1 else ""
    schedule = f"{request['schedule']} · " if request["schedule"] != "bulk" else ""
    return f"{schedule}{request['strategy']}{split}{depth}"


def _speedup_bars(axes: Axes, rows: Sequence[Row], baseline: Row) -> None:
    gains = {row.id: speedup(row, baseline) for row in rows}
    ordered = sorted(rows, key=lambda row: (not row.oversubscribed, gains[row.id].value))
    labels = []
    for place, row in enumerate(ordered):
        gain = gains[row.id]
        colour = bridge.find_schedule(row.request["schedule"]).colour
        faded: dict[str, Any]
        faded = {"color": "none", "edgecolor": colour, "hatch": "////"} if row.oversubscribed else {"color": colour}
        axes.barh(place, gain.value, height=0.66, **faded)
        if row is not baseline:
            axes.errorbar(gain.value, place, xerr=_error(gain), color=INK, elinewidth=1, capsize=2.5)
        note = "base" if row is baseline else f"{gain.value:.2f}" + (" oversubscribed" if row.oversubscribed else "")
        unsure = row is baseline or row.oversubscribed or gain.low <= 1 <= gain.high
        end = 1.0 if row is baseline else gain.high
        look: dict[str, Any] = {"color": PALE} if unsure else {"color": INK, "fontweight": "bold"}
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(end + 0.02, place, note, va="center", fontsize=9, bbox=box, **look)
        labels.append(_label(row, baseline))
    axes.axvline(1, color=INK, linewidth=1)
    axes.set_yticks(range(len(ordered)), labels, fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, axes.get_xlim()[1] * 1.08)
    axes.xaxis.grid(True)
    axes.set_title(f"{_headline(baseline)}: which exchange?")


def _depth_curve(axes: Axes, rows: Sequence[Row], baseline: Row) -> None:
    alike = [r for r in rows if all(r.request[k] == baseline.request[k] for k in ("schedule", "strategy", "threads"))]
    depths = sorted({row.request["depth"] for row in alike})
    for shift, (substeps, colour) in zip((0.97, 1.0, 1.03), SUBSTEPS_COLOURS.items(), strict=True):
        deep = [r for r in alike if r.request["depth"] > 1 and r.request["substeps"] == substeps]
        curve = [baseline, *sorted(deep, key=lambda r: r.request["depth"])]
        gains = [speedup(row, baseline) for row in curve[1:]]
        places, values = [row.request["depth"] * shift for row in curve], [1.0, *(gain.value for gain in gains)]
        label = SUBSTEPS_WORDS[substeps]
        axes.plot(places, values, color=colour, linewidth=2, marker="o", markersize=5, label=label)
        for place, gain in zip(places[1:], gains, strict=True):
            axes.errorbar(place, gain.value, yerr=_error(gain), color=colour, elinewidth=1, capsize=3)
    axes.axhline(1, color=INK, linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.minorticks_off()
    axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
    axes.yaxis.grid(True)
    axes.set_xlabel("halo depth = time steps per exchange")
    axes.set_ylabel("speed-up over depth 1")
    axes.legend()
    axes.set_title(f"{_headline(baseline)}: how deep a halo?")


def _headline(row: Row) -> str:
    return f"{row.request['app']} {cell(row.request['cells'])}"
