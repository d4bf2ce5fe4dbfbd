"""The study in two figures: speed-ups, packing, iterations and sends; timelines of one iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from haloscope.report import figures
from haloscope_studies.vanecek2020 import blocks, blocks_timeline, printed, variants
from haloscope_studies.vanecek2020.report import (
    OF_ITERATIONS,
    Measured,
    by_workload,
    iterations,
    published_by_workload,
    set_ups,
)

COLOURS = {"task queue, pinned": "#4c78a8", "task queue, memcpy": "#d1495b", "kernel per block": "#54a27a"}
OF_FLOWS = {"baseline": "#7b8794", "pinned": "#4c78a8", "device": "#d1495b", "kernels": "#54a27a"}


def draw(found: Sequence[Mapping], stem: Path) -> list[Path]:
    """Draw both figures of each set-up. Returns the files written, none without measurements."""
    return [
        file
        for number, here in enumerate(set_ups(found))
        for file in _draw_set_up(here, stem.with_name(f"{stem.name}-{number + 1}" if number else stem.name))
    ]


def _draw_set_up(here: Measured, stem: Path) -> list[Path]:
    if not here.timed:
        return []
    largest = blocks_timeline.with_timeline(list(here.detailed.values())[-1]) if here.detailed else []
    lines = blocks_timeline.figure(largest, stem.with_name(f"{stem.name}-timeline")) if largest else []
    return [*_draw_panels(here, stem), *lines]


def _draw_panels(here: Measured, stem: Path) -> list[Path]:
    about = here.rows[0].records[0]["environment"]
    title = f"{about['device']['name']}, {about.get('cpu', 'CPU')}; {' '.join(about['mpi_library'].split())[:40]}"
    with figures.style():
        figure, panels = plt.subplots(2, 2, figsize=(14, 9), layout="constrained")
        for axes, panel in zip(panels.flat, (_speedups, _packing, _iterations, _sends), strict=True):
            panel(axes, here)
            axes.grid(True, axis="y", color=figures.GRID)
            axes.set_axisbelow(True)
        imitated = f" {blocks.IMITATED}" if blocks.is_imitated(here.rows) else ""
        figure.suptitle(title + "." * bool(imitated) + imitated, x=0.01, ha="left", fontsize=9, color=figures.PALE)
        return figures.save(figure, stem)


def _caption(axes: Axes, text: str, x: str, y: str) -> None:
    axes.set_title(text, loc="left", fontweight="bold", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)


def _speedups(axes: Axes, here: Measured) -> None:
    """Draw figure 4.28."""
    names = printed.workload_names()
    for kind, values in by_workload(here).items():
        axes.plot([names.index(n) for n in values], list(values.values()), "o-", color=COLOURS[kind], label=kind)
    for kind, values in published_by_workload().items() if here.on_gpu else ():
        axes.plot(
            [names.index(n) for n in values], list(values.values()), "x:", color=COLOURS[kind], label=f"{kind}, V100"
        )
    axes.axhline(1, color=figures.INK, linewidth=1)
    axes.set_xticks(range(len(names)), names)
    _caption(axes, "Best of each kind over the fastest baseline", "workload", "speed-up")


def _packing(axes: Axes, here: Measured) -> None:
    """Draw figures 4.9 and 4.14."""
    rows = here.detailed[list(here.detailed)[-1]] if here.detailed else []
    for row in rows:
        words, flow = variants.words_of(row.variant), variants.flow_of(row.variant)
        kind = flow if flow != variants.TASKQUEUE else "device" if "device" in words else "pinned"
        seconds = row.per_block("packing_s")
        points = sorted(zip(row.request["bytes"], seconds, strict=True)) if seconds else []
        dashed = "--" if row.blocking else "-"
        axes.plot(
            [1e-3 * size for size, _ in points],
            [1e6 * s for _, s in points],
            dashed,
            marker=".",
            linewidth=1,
            color=OF_FLOWS[kind],
        )
    for kind, colour in OF_FLOWS.items():
        axes.plot(
            [],
            [],
            "-",
            color=colour,
            label={"pinned": "task queue, pinned", "device": "task queue, memcpy"}.get(kind, kind),
        )
    name = rows[0].request["workload"] if rows else ""
    _caption(axes, f"Packing a block, workload {name} (dashed: blocking sends)", "buffer (kB)", "us")


def _iterations(axes: Axes, here: Measured) -> None:
    """Draw boxes of each iteration of a test, warm-up included."""
    rows = [row for row in here.timed[list(here.timed)[-1]] if row.variant in (OF_ITERATIONS[0], OF_ITERATIONS[-1])]
    for number, row in enumerate(rows):
        values = 1e6 * iterations(row)
        places = [k + 1 + 0.36 * (number - 0.5) for k in range(values.shape[1])]
        colour = OF_FLOWS["pinned" if variants.flow_of(row.variant) == variants.TASKQUEUE else "baseline"]
        axes.boxplot(
            values,
            positions=places,
            widths=0.3,
            patch_artist=True,
            manage_ticks=False,
            flierprops={"markersize": 2},
            boxprops={"facecolor": colour},
            medianprops={"color": figures.INK},
        )
        axes.plot([], [], "s", color=colour, label=row.variant)
    axes.set_yscale("log")
    axes.set_xticks(range(1, printed.ITERATIONS + 1))
    _caption(axes, f"Iterations of a test, workload {list(here.timed)[-1]}", "iteration (three warm up)", "us")


def _sends(axes: Axes, here: Measured) -> None:
    """Draw figure 4.22."""
    longest = max((len(row.request["bytes"]) for row in here.first_sends), default=0)
    for row in here.first_sends:
        raised = row.request["bytes"][0] == printed.RAISED_BYTES
        label = ("block 0 raised" if raised else "block 0 of 8 B") + ", dummy message" * ("dummy" in row.variant)
        times = [1e6 * s for s in row.per_block("sending_s")]
        axes.plot(
            range(len(times)),
            times,
            "--" if "dummy" in row.variant else "-",
            marker="o",
            markersize=4,
            label=label,
            color=COLOURS["task queue, memcpy"] if raised else COLOURS["task queue, pinned"],
        )
    axes.set_yscale("log")
    axes.set_xticks(range(longest))
    _caption(axes, "Blocking sends", "block", "us")
