"""The report of micro-benchmarks: sections of Markdown, and one figure with a panel per chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haloscope.records.curves import Curve
from haloscope.records.text import machine_of, mpi_of
from haloscope.report import contention, microbench, shapes, tables
from haloscope.report.microbench import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

MOST_LINES = 20  # of a panel in distinct colours


def charts(table: Sequence[Curve]) -> list[Chart]:
    """Return all charts of some micro-benchmarks, charts of messages first."""
    found = [
        chart
        for group, members in microbench.groups_of(table).items()
        for chart in microbench.message_charts(group, members)
    ]
    return found + _other_charts(table)


def _other_charts(table: Sequence[Curve]) -> list[Chart]:
    """Return the charts of everything but messages through transports."""
    return microbench.onesided_charts(table) + microbench.collective_charts(table) + microbench.memory_charts(table)


def sections(table: Sequence[Curve]) -> list[str]:
    """Return the report as pieces of Markdown, each with its heading."""
    made = []
    for group, members in microbench.groups_of(table).items():
        made.append(f"### {group}\n\n{microbench.overview(members)}")
        made += [f"#### {chart.title}\n\n{chart.markdown()}" for chart in microbench.message_charts(group, members)]
    if found := contention.measured(table):
        made.append(f"### Contention: time over that of one message alone\n\n{contention.table(found)}")
        if laws := contention.laws(found):
            made.append("In terms of a profile (docs/understand/model.md): " + "; ".join(laws) + ".")
    made += [f"### {chart.title}\n\n{chart.markdown()}" for chart in _other_charts(table)]
    if judged := shapes.table(table):
        made.append(f"### Shapes over sizes\n\n{shapes.DEFINITIONS}\n\n{judged}")
    return made


def markdown(table: Sequence[Curve], found: Sequence[dict], file: Path) -> str:
    """Return the whole report of some records: sections, refusals, emulated networks, and the name of their file."""
    ends = [*tables.refusals(found), *tables.networks(found), f"records: {file}"]
    return "\n\n".join([*sections(table), *ends])


def title(table: Sequence[Curve]) -> str:
    """Return a title with the origin of the measurements.

    It names the programs whose output was imported, and CPU and MPI library of own measurements.
    """
    about = [curve.records[0]["environment"] for curve in table]
    programs = list(dict.fromkeys(e["program"] for e in about if "program" in e))
    own = next((e for e in about if "program" not in e), None)
    if own:
        programs.insert(0, f"{machine_of(own)}, {mpi_of(own)}; medians over launches")
    return "; ".join(programs)


def draw(table: Sequence[Curve], stem: Path) -> list[Path]:
    """Draw a panel per chart of some micro-benchmarks, two in a row. Returns the files written, none without charts."""
    from matplotlib import pyplot as plt

    from haloscope.report import figures

    if not (found := charts(table)):
        return []
    rows = (len(found) + 1) // 2
    with figures.style():
        fig, panels = plt.subplots(rows, 2, figsize=(12.5, 4.8 * rows), layout="constrained", squeeze=False)
        for chart, axes in zip(found, panels.flat, strict=False):
            _draw(chart, axes, plt.get_cmap("tab20"))
        for axes in panels.flat[len(found) :]:
            axes.set_axis_off()
        fig.suptitle(title(table), x=0.01, ha="left", fontsize=9, color=figures.PALE)
        return figures.save(fig, stem)


def _draw(chart: Chart, axes: Axes, colours: Colormap) -> None:
    from haloscope.report import figures

    for number, (name, line) in enumerate(chart.lines.items()):
        points = [(x, y) for x, y in line.items() if x > 0]  # messages of 0 bytes have no place on the axis
        look: dict[str, Any] = {"color": colours(number % MOST_LINES), "marker": "os^v"[number // MOST_LINES % 4]}
        label = figures.legend_label(name)
        axes.plot(*zip(*points, strict=True), label=label, markersize=3, linewidth=1.3, **look)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(True)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.unit)
    axes.set_title(chart.of)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8, ncols=2)
