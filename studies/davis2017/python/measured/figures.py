"""Local measurements in one figure: time per cell by size, components by processing elements, errors of the model,
variants, pieces, barriers. The study's figures, with local runs of the same size, are separate files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from haloscope.records.rows import Row, speedup
from haloscope.records.text import machine_of
from haloscope.report import components, figures
from haloscope_studies.davis2017.measured import paired, scaling, timed
from haloscope_studies.davis2017.measured.experiments import PIECES, VARIANTS, Point
from haloscope_studies.davis2017.replay import figures as redrawn
from haloscope_studies.davis2017.replay.figures import COLOURS


def draw(measured: Mapping[Point, Row], solves: Sequence[Mapping], stem: Path) -> list[Path]:
    """Draw the measurements, and the study's figures with the measurements added. solves: the records of `cg.run`.

    Returns the files written. Takes some seconds.
    """
    environment = next(iter(measured.values())).records[0]["environment"]
    machine, with_mpi = machine_of(environment), f"hydro3d with {_short(environment['mpi_library'])}"
    drawn = _draw_measured(measured, f"{machine}, {with_mpi}", stem)
    libraries = dict.fromkeys(f"PETSc {r['petsc']} with {_short(r['mpi_library'])}" for r in solves if "petsc" in r)
    return drawn + redrawn.draw(paired.lines(measured, solves), ", ".join([machine, with_mpi, *libraries]), stem)


def _short(library: str) -> str:
    return " ".join(library.partition(", package")[0].split())[:40]


def _draw_measured(measured: Mapping[Point, Row], title: str, stem: Path) -> list[Path]:
    with figures.style():
        figure, panels = plt.subplots(2, 3, figsize=(17, 9), layout="constrained")
        drawn = (_time_per_cell, _components, _errors, _variants, _pieces, _barriers)
        for axes, draw_panel in zip(panels.flat, drawn, strict=True):
            draw_panel(axes, measured)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9, color=figures.PALE)
        return figures.save(figure, stem)


def _caption(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontweight="bold", fontsize=11)
    axes.grid(True, axis="y", color=figures.GRID)
    axes.set_axisbelow(True)


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)


def _time_per_cell(axes: Axes, measured: Mapping[Point, Row]) -> None:
    """Plot the serial time per cell and step."""
    letters = sorted({p.letter for p in measured if p.experiment == "serial"})
    for letter, colour in zip(letters, COLOURS, strict=False):
        points = sorted(scaling.of(measured, "serial", letter).items(), key=lambda item: item[0].side)
        sides = [p.side for p, _ in points]
        axes.plot(sides, [row.step.value / p.side**3 * 1e9 for p, row in points], "o-", color=colour, label=letter)
    axes.set_yscale("log")
    axes.set_xlabel("cells per side")
    axes.set_ylabel("ns per cell and step")
    _legend(axes)
    _caption(axes, "Serial runs")


def _components(axes: Axes, measured: Mapping[Point, Row]) -> None:
    """Plot components of weak scaling at the largest size by the rule: largest work, least waiting."""
    side = max((p.side for p in scaling.of(measured, "weak")), default=0)
    points = sorted((p.pes, row) for p, row in scaling.of(measured, "weak").items() if p.side == side)
    bottom = [0.0] * len(points)
    names = [str(pes) for pes, _ in points]
    for name, colour in zip(components.COMPONENTS, COLOURS, strict=False):
        heights = [1e3 * components.counting(row.records)[name] for _, row in points]
        axes.bar(names, heights, 0.5, bottom, color=colour, label=name.replace("_", " "))
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    axes.plot(
        names, [1e3 * components.step_time(row.records) for _, row in points], "k_", markersize=28, label="walltime"
    )
    axes.set_xlabel("processing elements")
    axes.set_ylabel("ms per step")
    _legend(axes)
    _caption(axes, f"Weak scaling of A, {side}^3 cells each" if side else "Weak scaling of A")


def _variants(axes: Axes, measured: Mapping[Point, Row]) -> None:
    """Plot the speed of every variant over A at the same number of processing elements, with intervals."""
    known = {(p.letter, p.pes): row for p, row in measured.items() if p.experiment == "variants"}
    counts = sorted({pes for letter, pes in known if letter == "A"})
    names = [v.letter for v in VARIANTS if v.letter != "A"]  # A is the base of the comparison
    for number, pes in enumerate(counts):
        letters = [letter for letter in names if (letter, pes) in known]
        gains = [speedup(known[letter, pes], known["A", pes]) for letter in letters]
        aside = 0.8 * (number - (len(counts) - 1) / 2) / len(counts)
        places = [names.index(letter) + aside for letter in letters]
        ends = [[g.value - g.low for g in gains], [g.high - g.value for g in gains]]
        axes.bar(
            places,
            [g.value for g in gains],
            0.8 / len(counts),
            yerr=ends,
            color=COLOURS[number],
            error_kw={"linewidth": 0.8},
            label=f"{pes} PE{'s' * (pes > 1)}",
        )
    axes.axhline(1, color=figures.INK, linewidth=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("times as fast as A")
    _legend(axes)
    _caption(axes, "Variants")


def _pieces(axes: Axes, measured: Mapping[Point, Row]) -> None:
    """Plot step times of J by the layers that a thread takes at a time, and of I with even shares."""
    found = {p.piece: row for p, row in measured.items() if p.experiment == "pieces"}
    even = next((row for p, row in measured.items() if p.letter == "I"), None)
    pieces = [piece for piece in PIECES if piece in found]
    axes.plot(pieces, [1e3 * found[n].step.value for n in pieces], "o-", color=COLOURS[0], label="J, as they come")
    if even:
        axes.axhline(1e3 * even.step.value, color=COLOURS[1], label="I, even shares")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("layers a piece")
    axes.set_ylabel("ms per step")
    _legend(axes)
    _caption(axes, "Pieces of a threaded sweep")


def _barriers(axes: Axes, measured: Mapping[Point, Row]) -> None:
    """Plot the time in barriers before each exchange, and the range of compute over ranks that makes the ranks wait."""
    found = sorted((p.pes, row) for p, row in measured.items() if p.experiment == "barrier")
    spread = [[components.component(row.records, "compute", s) for s in ("min", "max")] for _, row in found]
    waited = [components.component(row.records, "barrier", "max") for _, row in found]
    names = [str(pes) for pes, _ in found]
    axes.plot(
        names, [1e3 * (high - low) for low, high in spread], "o", color=COLOURS[0], label="range of compute over ranks"
    )
    axes.plot(names, [1e3 * s for s in waited], "x", color=COLOURS[3], label="most time in barriers")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("processing elements")
    axes.set_ylabel("ms per step")
    _legend(axes)
    _caption(axes, "A barrier before each exchange")


def _errors(axes: Axes, measured: Mapping[Point, Row]) -> None:
    """Plot signed errors of the model at sizes that no cost was fitted to."""
    for make_law, marker, label in (
        (timed.joined, "o", "joined"),
        (timed.by_rule, "x", "the study's rule of segments"),
    ):
        found: Sequence = scaling.errors(measured, make_law)
        sides = [p.side for p, *_ in found]
        axes.plot(
            sides,
            [100 * (m.total / components.step_time(row.records) - 1) for _, row, m in found],
            marker,
            label=label,
            color=COLOURS[0] if marker == "o" else COLOURS[3],
        )
    axes.axhline(0, color=figures.INK, linewidth=0.8)
    axes.set_xlabel("cells per side")
    axes.set_ylabel("model over measured, %")
    _legend(axes)
    _caption(axes, "Sizes that no cost was fitted to")
