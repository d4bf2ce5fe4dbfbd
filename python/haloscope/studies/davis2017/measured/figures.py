"""The measured study in one figure: time per cell by size, components by processing elements, variants, errors of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from haloscope.report import components, figures, tables
from haloscope.report.figures import plt
from haloscope.report.tables import Row
from haloscope.studies import published
from haloscope.studies.davis2017.measured import scaling, timed
from haloscope.studies.davis2017.measured.experiments import VARIANTS, Point

COLOURS = ("#4c78a8", "#e4894b", "#54a27a", "#d1495b", "#b279a2", "#8c6d31", "#9d9da1")


def draw(measured: Mapping[Point, Row], stem: Path) -> list[Path]:
    """Draw the figure. Returns the files written."""
    environment = next(iter(measured.values())).records[0]["environment"]
    title = (
        f"hydro3d on {environment.get('cpu', 'CPU')}, {environment['cores']} cores, "
        f"{' '.join(environment['mpi_library'].split())[:40]}; published: Davis 2017, other machines"
    )
    with plt.rc_context(figures.STYLE):
        figure, panels = plt.subplots(2, 2, figsize=(12.5, 9), layout="constrained")
        _time_per_cell(panels[0][0], measured)
        _components(panels[0][1], measured)
        _variants(panels[1][0], measured)
        _errors(panels[1][1], measured)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9, color=figures.PALE)
        return figures.save(figure, stem)


def _caption(axes, text: str) -> None:
    axes.set_title(text, loc="left", fontweight="bold", fontsize=11)
    axes.grid(True, axis="y", color=figures.GRID)
    axes.set_axisbelow(True)


def _time_per_cell(axes, measured: Mapping[Point, Row]) -> None:
    """Serial time per cell and step; the published one beside it, from walltimes and printed numbers of iterations."""
    letters = sorted({p.letter for p in measured if p.experiment == "serial"})
    for letter, colour in zip(letters, COLOURS, strict=False):
        points = sorted(scaling.of(measured, "serial", letter).items(), key=lambda item: item[0].side)
        sides = [p.side for p, _ in points]
        axes.plot(sides, [row.step.value / p.side**3 * 1e9 for p, row in points], "o-", color=colour, label=letter)
    steps = {int(r["cells_per_side"]): int(r["iterations"]) for r in published("davis2017", "iterations")}
    for letter, colour in zip(letters, COLOURS, strict=False):
        rows = [
            r for r in published("davis2017", "variant_walltimes") if (r["variant"], r["scaling"]) == (letter, "serial")
        ]
        sides = [int(r["cells_per_side"]) for r in rows]
        times = [float(r["time_s"]) / steps[n] / n**3 * 1e9 for r, n in zip(rows, sides, strict=True)]
        if rows:
            axes.plot(sides, times, "x--", color=colour, linewidth=0.8, label=f"{letter}, published (Minerva)")
    axes.set_yscale("log")
    axes.set_xlabel("cells per side")
    axes.set_ylabel("ns per cell and step")
    axes.legend(frameon=False, fontsize=8)
    _caption(axes, "Serial runs")


def _components(axes, measured: Mapping[Point, Row]) -> None:
    """Components of weak scaling at the largest size, as the rule takes them: largest work, least waiting."""
    side = max(p.side for p in measured if p.experiment == "serial")
    points = sorted((p.pes, row) for p, row in scaling.of(measured, "weak").items() if p.side == side)
    bottom = [0.0] * len(points)
    names = [str(pes) for pes, _ in points]
    for name, colour in zip(components.COMPONENTS, COLOURS, strict=True):
        heights = [1e3 * components.counting(row.records)[name] for _, row in points]
        axes.bar(names, heights, 0.5, bottom, color=colour, label=name.replace("_", " "))
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    axes.plot(
        names, [1e3 * components.step_time(row.records) for _, row in points], "k_", markersize=28, label="walltime"
    )
    axes.set_xlabel("processing elements")
    axes.set_ylabel("ms per step")
    axes.legend(frameon=False, fontsize=8)
    _caption(axes, f"Weak scaling of A, {side}^3 cells each")


def _variants(axes, measured: Mapping[Point, Row]) -> None:
    """Speed of every variant over A at the same number of processing elements, with intervals."""
    known = {(p.letter, p.pes): row for p, row in measured.items() if p.experiment == "variants"}
    counts = sorted({pes for _, pes in known})
    names = [v.letter for v in VARIANTS if v.letter != "A"]  # what all others are compared with
    for number, pes in enumerate(counts):
        letters = [letter for letter in names if (letter, pes) in known]
        gains = [tables.speedup(known[letter, pes], known["A", pes]) for letter in letters]
        aside = 0.8 * (number - (len(counts) - 1) / 2) / len(counts)
        places = [names.index(letter) + aside for letter in letters]
        ends = [[g.value - g.low for g in gains], [g.high - g.value for g in gains]]
        axes.bar(places, [g.value for g in gains], 0.8 / len(counts), yerr=ends, color=COLOURS[number],
                 error_kw={"linewidth": 0.8}, label=f"{pes} PE{'s' * (pes > 1)}")  # fmt: skip
    axes.axhline(1, color=figures.INK, linewidth=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("times as fast as A")
    axes.legend(frameon=False, fontsize=8)
    _caption(axes, "Variants")


def _errors(axes, measured: Mapping[Point, Row]) -> None:
    """Signed errors of the model on sizes that no cost was fitted to."""
    for make_law, marker, label in (
        (timed.joined, "o", "joined"),
        (timed.by_rule, "x", "the study's rule of segments"),
    ):
        found: Sequence = scaling.errors(measured, make_law)
        sides = [p.side for p, *_ in found]
        axes.plot(sides, [100 * (m.total / components.step_time(row.records) - 1) for _, row, m in found], marker, label=label,
                  color=COLOURS[0] if marker == "o" else COLOURS[3])  # fmt: skip
    axes.axhline(0, color=figures.INK, linewidth=0.8)
    axes.set_xlabel("cells per side")
    axes.set_ylabel("model over measured, %")
    axes.legend(frameon=False, fontsize=8)
    _caption(axes, "Sizes that no cost was fitted to")
