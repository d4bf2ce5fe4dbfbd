"""Lines for the figures of the paper: measured here, counted here, and simulated; none stands next to a printed value.

The paper states speeds of GPUs that have long gone, and prints its curves without numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from haloscope.records.rows import Row
from haloscope.studies import Options
from haloscope.studies.paper_panels import HERE, OURS, Line
from haloscope_studies.white2011 import code_size, curves
from haloscope_studies.white2011.comparisons import Measured, best_of, is_on_gpu
from haloscope_studies.white2011.report import speed
from haloscope_studies.white2011.versions import Point

CORES = curves.CORES[:-1]  # the last one takes ten seconds


def lines(measured: Measured, options: Options) -> dict[str, list[Line]]:
    """Return the lines of each panel. Takes three seconds for the simulated ones."""
    counted = [Line(letter, {"lines of code": float(count)}, OURS) for letter, count in code_size.counts().items()]
    gpu = {"blocks": _blocks(measured), "boxes": _boxes(measured)} if is_on_gpu(options) else {}
    return {
        "lines here": counted,
        **_simulated(),
        "best by cores": _best(measured),
        "threads": _threads(measured),
        **gpu,
    }


def _simulated() -> dict[str, list[Line]]:
    on = curves.machine()
    found = {cores: curves.speeds(cores, on) for cores in CORES}
    best = {
        letter: {
            float(cores): max(gf for (name, _), gf in speeds.items() if name == letter)
            for cores, speeds in found.items()
        }
        for letter in "BCD"
    }
    threads = {t: {float(cores): speeds["B", t] for cores, speeds in found.items()} for t in curves.THREADS}
    return {
        "simulated": [Line(letter, points, OURS) for letter, points in best.items()],
        "simulated threads": [Line(f"B, {t} a task", points, OURS) for t, points in threads.items()],
    }


def _best(measured: Measured) -> list[Line]:
    """Return the best speed of each version by cores, at the largest size."""
    best = best_of(measured)
    cells = max((p.cells for p in best), default=0)
    found = {p: row for p, row in best.items() if p.cells == cells}
    letters = sorted({p.letter for p in found})
    return [
        _line(f"{letter}, {cells}^3", {float(p.cores): (p, row) for p, row in found.items() if p.letter == letter})
        for letter in letters
    ]


def _threads(measured: Measured) -> list[Line]:
    """Return the speed of B by size, a line for each way to use all cores."""
    cores = max((p.cores for p in measured), default=0)
    found = {p: row for p, row in measured.items() if (p.letter, p.cores) == ("B", cores)}
    return [
        _line(f"B, {split} cores", {float(p.cells): (p, row) for p, row in found.items() if p.split == split})
        for split in dict.fromkeys(p.split for p in found)
    ]


def _line(label: str, found: Mapping[float, tuple[Point, Row]]) -> Line:
    """Return speeds with their intervals."""
    points = {x: speed(p, row) for x, (p, row) in found.items()}
    ends = {
        x: (points[x] * row.step.value / row.step.high, points[x] * row.step.value / row.step.low)
        for x, (_, row) in found.items()
    }
    return Line(label, points, HERE, ends)


def _blocks(measured: Measured) -> list[Line]:
    """Return the speed of E: a line for each height of a block, over widths; at the largest size."""
    shaped = {p: row for p, row in measured.items() if p.block}
    cells = max((p.cells for p in shaped), default=0)
    grid: dict[str, dict[float | str, float]] = {}
    for p, row in sorted(shaped.items(), key=lambda item: [int(n) for n in reversed(item[0].block.split("x"))]):
        if p.cells == cells:
            x, y = p.block.split("x")
            grid.setdefault(y, {})[float(x)] = speed(p, row)
    return [Line(height, points, HERE) for height, points in grid.items()]


def _boxes(measured: Measured) -> list[Line]:
    """Return the speed of I: a line for each way to use all cores, over layers of the box; at the largest size."""
    boxes = {p: row for p, row in measured.items() if p.letter == "I"}
    largest = max(((p.cells, p.cores) for p in boxes), default=(0, 0))
    grid: dict[str, dict[float | str, float]] = {}
    for p, row in boxes.items():
        if (p.cells, p.cores) == largest:
            grid.setdefault(p.split, {})[float(p.walls)] = speed(p, row)
    return [Line(split, points, HERE) for split, points in grid.items()]
