"""Lines for the figures of the thesis: panels that are computed from its tables, with local runs of the same size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from haloscope.records.rows import speedup
from haloscope.studies import paper_panels, published
from haloscope.studies.paper_panels import Line
from haloscope_studies.davis2017.measured import paired, scaling
from haloscope_studies.davis2017.measured.scaling import Measured
from haloscope_studies.davis2017.replay import panels
from haloscope_studies.davis2017.replay.panels import Series

SOURCES = {
    panels.MEASURED: paper_panels.PRINTED,
    panels.ALSO: paper_panels.PRINTED,
    panels.MODEL: paper_panels.MODEL,
    panels.OURS: paper_panels.OURS,
    panels.HERE: paper_panels.HERE,
}
NANOSECONDS = 1e9
PLACEMENTS = {"intra": "in a node", "inter": "between nodes"}


def lines(measured: Measured, solves: Sequence[Mapping]) -> dict[str, list[Line]]:
    """Return the lines of each computed panel; solves: the records of `cg.run`. Takes a second."""
    theirs = {name: panel.series for sheet in panels.sheets().values() for name, panel in sheet.items()}
    here = paired.lines(measured, solves)
    made = {name: [_line(s) for s in (*series, *here.get(name, ()))] for name, series in theirs.items()}
    return made | {"fits": _fits(), "serial here": _serial(measured), "variants here": _variants(measured)}


def _line(series: Series) -> Line:
    return Line(series.label, series.points, SOURCES[series.source], series.ends)


def _serial(measured: Measured) -> list[Line]:
    """Return the time of a cell and step of each variant in serial runs, in ns by cells per side."""
    made = []
    for letter in sorted({p.letter for p in measured if p.experiment == "serial"}):
        found = {p.side: row.step for p, row in scaling.of(measured, "serial", letter).items()}
        points = {float(n): NANOSECONDS * step.value / n**3 for n, step in found.items()}
        ends = {float(n): (NANOSECONDS * s.low / n**3, NANOSECONDS * s.high / n**3) for n, s in found.items()}
        made.append(Line(letter, points, paper_panels.HERE, ends))
    return made


def _variants(measured: Measured) -> list[Line]:
    """Return the speed of each variant over A at the same size and processing elements."""
    known = {(p.letter, p.pes): (p.side, row) for p, row in measured.items() if p.experiment == "variants"}
    made = []
    for letter in sorted({letter for letter, _ in known} - {"A"}):
        gains = {}
        for pes in (pes for name, pes in known if name == letter and ("A", pes) in known):
            side, row = known[letter, pes]
            gains[f"{pes} PE{'s' * (pes > 1)}, {side}^3"] = speedup(row, known["A", pes][1])
        ends = {x: (e.low, e.high) for x, e in gains.items()}
        made.append(Line(letter, {x: e.value for x, e in gains.items()}, paper_panels.HERE, ends))
    return made


def _fits() -> list[Line]:
    """Return the message times of table 5.9's segments at the measured sizes."""
    regimes = published("davis2017", "message_regimes")
    found: dict[str, dict[float | str, float]] = {}
    for row in panels.rows("pingpong", machine="minerva", quantity="half_round_trip", pairs="1"):
        size = float(row["message_bytes"])
        [regime] = [r for r in regimes if r["placement"] == row["placement"] and _holds(r, size)]
        time = float(regime["intercept_us"]) + float(regime["slope_us_per_byte"]) * size
        found.setdefault(PLACEMENTS[row["placement"]], {})[size] = time
    return [Line(label, points, paper_panels.MODEL) for label, points in found.items()]


def _holds(regime: Mapping[str, str], size: float) -> bool:
    return float(regime["bytes_from"]) <= size < float(regime["bytes_below"] or math.inf)
