"""The map of advice for readers: a table, and a figure with a cell for each network and block size."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haloscope.advice.map import Spot, techniques
from haloscope.bridge import Choice
from haloscope.model.profile import Profile
from haloscope.report import tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# By the techniques of the winner, see _kind().
COLOURS = {
    "plain exchange": "#e4e7eb",
    "other messages": "#f2cf8f",
    "overlap": "#9ecae1",
    "deep halos": "#9ad0a5",
    "deep halos and overlap": "#4fa3a5",
}


def title_of(choice: Choice, machine: Profile, bandwidth: str) -> str:
    """Return a title with the properties that all spots of a map have in common."""
    return (
        f"{choice.app}, {choice.ranks} ranks, each on a node of its own, {bandwidth} a line, profile {machine.name}: "
        f"the winner, and how many times faster than plain messages it is"
    )


def document(found: Mapping[str, Sequence[Spot]]) -> dict:
    """Return maps as plain data; times in seconds per time step."""
    document: dict = {"schema": "haloscope.map", "schema_version": 1}
    for name, spots in found.items():
        document[name] = [dataclasses.asdict(spot) | {"choice": spot.choice.to_json()} for spot in spots]
    return document


def markdown(found: Mapping[str, Sequence[Spot]], title: str) -> str:
    """Return maps as tables."""
    parts = [f"## {name.capitalize()}\n\n{table(spots)}" for name, spots in found.items()]
    return "\n\n".join([f"# Map: {title}", *parts])


def table(spots: Sequence[Spot]) -> str:
    """Return a map as a table: a row for each size, a column for each network."""
    latencies = sorted({spot.latency_s for spot in spots})
    by_place = {(spot.block, spot.latency_s): spot for spot in spots}
    rows = []
    for block in sorted({spot.block for spot in spots}):
        found = [by_place.get((block, latency)) for latency in latencies]
        rows.append([block, *(_words(spot) if spot else "" for spot in found)])
    return tables.markdown(rows, ["cells a rank", *map(latency_text, latencies)], right=["cells a rank"])


def latency_text(seconds: float) -> str:
    """Return a latency with its unit: 50 us, 1 ms."""
    return f"{1e3 * seconds:g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:g} us"


def _words(spot: Spot) -> str:
    words = ", ".join(techniques(spot.choice)) or "plain"
    return f"{words}: {spot.gain:.2f}x"


def _kind(spot: Spot) -> str:
    from haloscope import bridge

    deep = spot.choice.depth > 1
    overlap = not bridge.find_schedule(spot.choice.schedule).plain
    if deep or overlap:
        return "deep halos and overlap" if deep and overlap else "deep halos" if deep else "overlap"
    return "other messages" if techniques(spot.choice) else "plain exchange"


def draw(maps: Mapping[str, Sequence[Spot]], title: str, stem: Path) -> list[Path]:
    """Draw maps side by side, titled by their names, on the same axes; return the files written (SVG and PNG)."""
    from matplotlib import pyplot as plt
    from matplotlib.patches import Rectangle

    from haloscope.report import figures
    from haloscope.report.figures import PALE, style

    blocks = sorted({spot.block for spots in maps.values() for spot in spots})
    latencies = sorted({spot.latency_s for spots in maps.values() for spot in spots})
    with style():
        width = max(7.0, 1.1 + 1.25 * len(latencies) * len(maps))
        figure = plt.figure(figsize=(width, 1.7 + 0.72 * len(blocks)), layout="constrained")
        parts = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
        for axes, (name, spots) in zip(parts, maps.items(), strict=True):
            _cells(axes, spots, blocks, latencies)
            axes.set_title(name, fontsize=10)
        parts[0].set_ylabel("cells of a rank in each dimension")
        used = [kind for kind in COLOURS if any(_kind(spot) == kind for spots in maps.values() for spot in spots)]
        handles = [Rectangle((0, 0), 1, 1, color=COLOURS[kind]) for kind in used]
        figure.legend(handles, used, loc="outside lower center", ncols=len(used))
        lines = textwrap.wrap(title, int(13 * width))  # characters that fit
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9, color=PALE)
        return figures.save(figure, stem)


def _cells(axes: Axes, spots: Sequence[Spot], blocks: Sequence[int], latencies: Sequence[float]) -> None:
    """Draw one map: each winner's kind as a colour, its techniques and gain as text."""
    from matplotlib.patches import Rectangle

    from haloscope.report.figures import INK

    for spot in spots:
        x, y = latencies.index(spot.latency_s), blocks.index(spot.block)
        axes.add_patch(Rectangle((x - 0.49, y - 0.48), 0.98, 0.96, color=COLOURS[_kind(spot)]))
        words = techniques(spot.choice) or ("plain",)
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5, "color": INK}
        axes.text(x, y + 0.12, "\n".join(words), linespacing=1.05, **look)
        axes.text(x, y - 0.36, f"{spot.gain:.2f}x", fontweight="bold", **look)
    axes.set_xlim(-0.5, len(latencies) - 0.5)
    axes.set_ylim(-0.5, len(blocks) - 0.5)
    axes.set_xticks(range(len(latencies)), [latency_text(latency) for latency in latencies])
    axes.set_yticks(range(len(blocks)), list(map(str, blocks)))
    axes.set_xlabel("latency of the network, one way")
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
