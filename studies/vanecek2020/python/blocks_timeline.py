"""Timelines of one iteration of exchanged blocks: a trace for Perfetto, and a figure (as figures 4.4 and 4.8 of Vanecek
2020).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from haloscope import outputs
from haloscope.errors import UsageError
from haloscope.report import tables
from haloscope_studies.vanecek2020 import variants
from haloscope_studies.vanecek2020.blocks import Row, heading, place

CPU, DEVICE, COPIES = "CPU", "device", "copy stream"  # lines of a block in a trace
CPU_KINDS, COPY_KINDS = ("send", "receive", "notify"), ("copy-in", "copy-out")  # events of the first and the last line
COMPUTE_BLOCK = -2  # of kernels, which belong to all blocks
# By flow, the kernels of the compute stream, each with the kinds of events that it runs. Flow `kernels` has none.
KERNELS: dict[str, dict[str, tuple[str, ...]]] = {
    variants.TASKQUEUE: {"kernel": ("pack", "unpack")},
    variants.BASELINE: {"packing kernel": ("pack",), "unpacking kernel": ("unpack",)},
}
COLOURS = {
    "copy-in": "#9ecae9",
    "pack": "#4c78a8",
    "post": "#b279a2",
    "copy-out": "#8c6d31",
    "send": "#d1495b",
    "receive": "#1f2933",
    "notify": "#e0a030",
    "unpack": "#54a27a",
}
LEAST_LABELLED = 0.03  # of the iteration: shorter segments have no room for their name


def refuse_foreign(file: Path) -> None:
    """Raise UsageError if the trace or the figure would replace a file of another program."""
    outputs.refuse_foreign(file, outputs.TRACE)
    outputs.refuse_foreign_figure(outputs.stem_of(file))


def draw(table: Iterable[Row], file: Path) -> str:
    """Write the trace of some rows and draw it; return the lines that name the files.

    Raises UsageError for rows without timelines.
    """
    shown = with_timeline(table)
    if not shown:
        raise UsageError("these records have no timelines; measure with --timeline")
    write_trace(shown, file)
    drawn = figure(shown, outputs.stem_of(file))
    return f"trace:   {file}\nfigure:  {', '.join(map(str, drawn))}"


def with_timeline(table: Iterable[Row]) -> list[Row]:
    """Return the rows that have a timeline, smaller workloads first."""
    ordered = sorted(table, key=lambda row: (sum(row.request["bytes"]), place(row)))
    return [row for row in ordered if any("timeline" in record for record in row.records)]


def timeline(row: Row) -> list[dict]:
    """Return the events of the last iteration of the last launch, seconds from its beginning."""
    events = next(record["timeline"] for record in reversed(row.records) if "timeline" in record)
    origin = min(event["begin_s"] for event in events)
    shifted = [event | {name: event[name] - origin for name in ("begin_s", "end_s")} for event in events]
    return sorted(shifted, key=lambda event: event["begin_s"])


def name(row: Row) -> str:
    """Return the variant, and the workload if it has a name."""
    workload = row.request["workload"]
    return f"{row.variant}, workload {workload}" if workload else row.variant


def precision(row: Row) -> str:
    """Return the precision of device times on the CPU's clock: closer events of both may be drawn in wrong order."""
    clock = next(record["clock"] for record in reversed(row.records) if "timeline" in record)
    return f"device +- {1e6 * clock['precision_s']:.1f} us"


def block_name(row: Row, block: int) -> str:
    """Return the name of a rank's block; blocks of its sides are numbered one side after the other."""
    side, number = divmod(block, len(row.request["bytes"]))
    return f"block {number}" if row.request["sides"] == 1 else f"side {side}, block {number}"


def trace(table: Sequence[Row]) -> dict:
    """Return all timelines as one trace, for Perfetto or chrome://tracing: a process for each variant and rank."""
    made, processes = [], 0
    for row in table:
        events = timeline(row)
        for rank in sorted({event["rank"] for event in events}):
            mine = [event for event in events if event["rank"] == rank]
            mine += _kernels(row, mine)
            made += [_named("process_name", processes, 0, f"{name(row)}, rank {rank}")]
            made += [_named("process_labels", processes, 0, precision(row), "labels")]
            made += [_named("thread_name", processes, *lane) for lane in _lanes(row, mine).items()]
            made += [_traced(event, processes) for event in mine]
            processes += 1
    return {"displayTimeUnit": "ns", "traceEvents": made}


def write_trace(table: Sequence[Row], file: Path) -> None:
    """Write the trace of some rows, as `outputs.write` does."""
    outputs.write(file, outputs.TRACE, json.dumps(trace(table)) + "\n")


def _kernels(row: Row, events: Sequence[Mapping]) -> list[dict]:
    """Return the kernels of the compute stream, each from the first to the last event of its blocks."""
    found = []
    for kernel, kinds in KERNELS.get(variants.flow_of(row.variant), {}).items():
        inside = [event for event in events if event["kind"] in kinds and event["block"] >= 0]
        if not inside:
            continue
        ends = {"begin_s": min(e["begin_s"] for e in inside), "end_s": max(e["end_s"] for e in inside)}
        found.append({"kind": kernel, "block": COMPUTE_BLOCK, "chunk": 0} | ends)
    return found


def _lane(event: Mapping) -> int:
    """Return 0 for segments of the CPU's time, 1 for the compute stream, then three numbers a block for its lines."""
    if event["block"] < 0:
        return 1 if event["block"] == COMPUTE_BLOCK else 0
    return 2 + 3 * int(event["block"]) + (CPU, DEVICE, COPIES).index(_line(event))


def _lanes(row: Row, events: Iterable[Mapping]) -> dict[int, str]:
    return {_lane(e): _lane_name(row, e) for e in sorted(events, key=_lane)}


def _lane_name(row: Row, event: Mapping) -> str:
    if event["block"] < 0:
        return "compute stream" if event["block"] == COMPUTE_BLOCK else CPU
    return f"{block_name(row, event['block'])}, {_line(event)}"


def _line(event: Mapping) -> str:
    return CPU if event["kind"] in CPU_KINDS else COPIES if event["kind"] in COPY_KINDS else DEVICE


def _named(kind: str, process: int, lane: int, name: str, key: str = "name") -> dict:
    return {"name": kind, "ph": "M", "pid": process, "tid": lane, "args": {key: name}}


def _traced(event: Mapping, process: int) -> dict:
    return {
        "name": event["kind"],
        "ph": "X",
        "pid": process,
        "tid": _lane(event),
        "ts": 1e6 * event["begin_s"],
        "dur": 1e6 * (event["end_s"] - event["begin_s"]),
        "args": {"chunk": event["chunk"]},
    }


def figure(shown: Sequence[Row], stem: Path) -> list[Path]:
    """Draw the timelines below each other, a line for each block of each rank. Returns the files written."""
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    from haloscope.report import figures

    heights = [2 + len({(e["rank"], e["block"]) for e in timeline(row)}) for row in shown]
    with figures.style():
        drawn, panels = plt.subplots(
            len(shown),
            1,
            figsize=(11, min(1.5 + 0.28 * sum(heights), 60)),
            layout="constrained",
            squeeze=False,
            height_ratios=heights,
        )
        for row, axes in zip(shown, panels[:, 0], strict=True):
            _draw(row, axes)
        kinds = {e["kind"] for row in shown for e in timeline(row) if e["block"] >= 0}
        keys = [
            Line2D([], [], marker="s", linestyle="", color=c, label=kind)
            for kind, c in COLOURS.items()
            if kind in kinds
        ]
        drawn.legend(handles=keys, frameon=False, fontsize=8, ncols=len(keys), loc="outside lower center")
        about = dict.fromkeys(heading(row.request) for row in shown)
        drawn.suptitle("\n".join(about), x=0.01, ha="left", fontsize=9, color=figures.PALE)
        return figures.save(drawn, stem)


def _draw(row: Row, axes: Axes) -> None:
    from haloscope.report import figures

    events = timeline(row)
    lines = sorted({(event["rank"], event["block"]) for event in events}, reverse=True)
    lane_of = {line: number for number, line in enumerate(lines)}
    whole = max(event["end_s"] for event in events)
    unit, factor = tables.unit([whole / 10])
    for number, event in enumerate(e for e in events if e["block"] < 0):
        _segment(
            axes, event, lane_of[event["rank"], -1], factor, factor * whole, figures.GRID if number % 2 else "#cbd2d9"
        )
    for kind, colour in COLOURS.items():
        for event in (e for e in events if e["kind"] == kind and e["block"] >= 0):
            _mark(axes, event, lane_of[event["rank"], event["block"]], factor, colour)
    ranks = len({event["rank"] for event in events})
    labels = ["CPU" if block < 0 else block_name(row, block) for _, block in lines]
    axes.set_yticks(
        range(len(lines)),
        [f"{rank}: {label}" if ranks > 1 else label for (rank, _), label in zip(lines, labels, strict=True)],
        fontsize=7,
    )
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(unit)
    axes.set_title(name(row), loc="left", fontweight="bold", fontsize=10)
    axes.text(0.01, 0.99, precision(row), transform=axes.transAxes, va="top", fontsize=7, color=figures.PALE)


def _segment(axes: Axes, event: Mapping, place: int, factor: float, whole: float, colour: str) -> None:
    begin, end = factor * event["begin_s"], factor * event["end_s"]
    axes.barh(place, end - begin, left=begin, height=0.8, color=colour)
    if end - begin > LEAST_LABELLED * whole:
        axes.text((begin + end) / 2, place, event["kind"], ha="center", va="center", fontsize=6)


def _mark(axes: Axes, event: Mapping, place: int, factor: float, colour: str) -> None:
    """Draw a bar of the device above, of the CPU below; a point for an event without duration."""
    begin, end = factor * event["begin_s"], factor * event["end_s"]
    shift = -0.2 if _line(event) == CPU else 0.2
    if end > begin:
        axes.barh(place + shift, end - begin, left=begin, height=0.36, color=colour, edgecolor=colour, linewidth=0.8)
    else:
        axes.plot([begin], [place + shift], "|", color=colour, markersize=8 if event["kind"] == "receive" else 4)
