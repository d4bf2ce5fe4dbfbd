"""Pages of predictions alone: the candidates of an advice, and a map of networks and block sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from haloscope.advice.advise import Advice, Group, name
from haloscope.advice.map import Spot, techniques
from haloscope.model.profile import Profile
from haloscope.report import map as maps
from haloscope.report import tables
from haloscope.report.page import Chart, Section, Table, content, label, messages
from haloscope.report.page.marks import MOST_BARS, colour_of, height_of, ranked_bars
from haloscope.terminal import echo

PREDICTED = "Predicted, not measured: a model, by the costs of profile"


def write_requested_advice(path: Path | None, advice: Advice, machine: Profile) -> None:
    """Write the page about an advice that a command was asked for, if any, and print the line that names it."""
    if path is not None:
        c = advice.best.choice
        parts = [_answer(advice, machine), _candidates(advice, machine), messages.section([], machine)]
        echo(content.write_sections(path, f"Advice: {c.app}, {c.shape} cells, {c.ranks} ranks", parts))


def _answer(advice: Advice, machine: Profile) -> Section:
    pick = advice.pick.prediction
    words = [f"{PREDICTED} {machine.name}.", f"Use {name(pick.choice)}: {pick.reason}."]
    if (others := len(advice.equals) - 1) > 0:
        words.append(f"The model cannot distinguish {others} more candidates from it; it is the simplest of them.")
    return Section("What to use", [*words, *advice.changes])


def _candidates(advice: Advice, machine: Profile) -> Section:
    drawn = advice.groups[:MOST_BARS]
    unit, factor = tables.unit(group.simplest.time_s for group in drawn)
    lines = [_line(group, factor) for group in advice.groups]
    names = [line[0] for line in lines[: len(drawn)]]
    marks = {"color": [colour_of(group.simplest.choice.strategy) for group in drawn]}
    times = [(simplest, simplest, slowest) for _, simplest, slowest, *_ in lines[: len(drawn)]]
    bars, layout = ranked_bars(names, times, marks, f"{unit} per step", "predicted")
    caption = f"{PREDICTED} {machine.name}. A bar is the simplest candidate of a group, its mark the slowest one."
    columns = ["candidate", f"step ({unit})", f"slowest of its group ({unit})", "candidates", "why"]
    chart = Chart("Groups", caption, [bars], layout, Table(columns, lines), height_of(len(drawn)))
    return Section("Candidates", [], [chart])


def _line(group: Group, factor: float) -> list[Any]:
    times = [factor * group.simplest.time_s, factor * max(member.time_s for member in group.members)]
    return [name(group.simplest.choice), *times, len(group.members), group.simplest.prediction.reason]


def write_requested_map(path: Path | None, found: Mapping[str, Sequence[Spot]], title: str) -> None:
    """Write the page about maps that a command was asked for, if any, and print the line that names it."""
    if path is not None:
        charts = [_map(kind, spots) for kind, spots in found.items()]
        echo(content.write_sections(path, "Map of networks and block sizes", [Section("Map", [f"{title}."], charts)]))


def _map(kind: str, spots: Sequence[Spot]) -> Chart:
    """Return a heat map of gains, with the techniques of the winners as texts."""
    latencies, blocks = sorted({spot.latency_s for spot in spots}), sorted({spot.block for spot in spots})
    at = {(spot.block, spot.latency_s): spot for spot in spots}
    cells = [[at.get((block, latency)) for latency in latencies] for block in blocks]
    trace = {
        "type": "heatmap",
        "x": [maps.latency_text(latency) for latency in latencies],
        "y": [str(block) for block in blocks],
        "z": [[spot.gain if spot else None for spot in line] for line in cells],
        "text": [[label(_words(spot)) if spot else "" for spot in line] for line in cells],
        "texttemplate": "%{text}<br>%{z:.2f}x",
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": "speed-up"}},
    }
    layout = {
        "xaxis": {"title": {"text": "latency of the network, one way"}, "type": "category"},
        "yaxis": {"title": {"text": "cells of a rank in each dimension"}, "type": "category"},
    }
    lines: list[list[Any]] = [
        [spot.block, maps.latency_text(spot.latency_s), _words(spot), spot.gain] for spot in spots
    ]
    table = Table(["cells of a rank", "latency", "winner", "speed-up over plain messages"], lines)
    return Chart(kind.capitalize(), f"{kind.capitalize()}: the winner of each place.", [trace], layout, table, 460)


def _words(spot: Spot) -> str:
    return ", ".join(techniques(spot.choice)) or "plain"
