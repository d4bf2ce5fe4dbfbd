"""The report of measured versions: all points, the best of each, gains of overlap, block shapes, boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from haloscope.records import stats
from haloscope.records.rows import Row, are_close
from haloscope.report import tables
from haloscope.studies import Options, published
from haloscope_studies.white2011 import code_size
from haloscope_studies.white2011.comparisons import (
    GAINS,
    IMITATION,
    Gain,
    Group,
    Measured,
    best_of,
    groups,
    is_on_gpu,
    stated_gain,
)
from haloscope_studies.white2011.versions import BOXES, ON_DEVICE, VERSIONS, Point

IMITATED = (
    "The device is imitated by threads of the CPU. The times of E to I are not times of a GPU, and no published number "
    "stands next to them."
)
EXPECTED = {  # section 9: signs to expect, nothing to pass or fail
    "C over B": "slightly faster below 4000 cores of JaguarPF (40000 of Hopper II), slower above; little or nothing "
    "elsewhere",
    "D over B": "behind everywhere",
}


def report(measured: Measured, options: Options) -> str:
    """Return the tables of a study's rows."""
    best = best_of(measured)
    sections = {
        "All points": _points_table(measured),
        "Best per core count": _points_table(best, rivals(best, measured)),
        "Gains of overlap": _gains_table(measured, options),
        "E by block shape": _blocks_table(measured, options),
        "H and I by tasks x threads, layers of the box": _boxes_table(measured, options),
        "Lines of code": code_size.table(),
    }
    texts = [f"### {title}\n\n{text}" for title, text in sections.items() if text]
    return "\n\n".join([IMITATED] * (options.device == IMITATION) + texts)


def flops_per_point() -> int:
    """Return the operations per point and step that the paper's rate counts (section II)."""
    return next(int(r["value"]) for r in published("white2011", "stated_results") if r["quantity"] == "flops_per_point")


def speed(point: Point, row: Row) -> float:
    """Return the rate in GF/s of the median step: the paper's measure of work, whatever the kernel computes."""
    return flops_per_point() * point.cells**3 / row.step.value * 1e-9


def rivals(best: Measured, measured: Measured) -> dict[Point, str]:
    """Return a note on each best setting that other settings cannot be distinguished from."""
    notes = {}
    for point, row in best.items():
        same = (p for p in measured if (p.cells, p.cores, p.letter) == (point.cells, point.cores, point.letter))
        close = [p for p in same if p != point and not measured[p].oversubscribed and are_close(measured[p], row)]
        if close:
            notes[point] = f"{'; '.join(p.setting for p in close)}: {stats.NO_CHOICE}"
    return notes


def tasks_per_device(point: Point, row: Row) -> str:
    """Return the largest number of tasks that share a device of the node; "" for versions without a device."""
    if point.letter not in ON_DEVICE:
        return ""
    devices = row.records[0]["environment"].get("device", {}).get("on_node", 1)
    return str(math.ceil(point.tasks / devices))


def _points_table(measured: Measured, remarks: Mapping[Point, str] | None = None) -> str:
    unit, factor = tables.unit(row.step.value for row in measured.values())
    headers = [
        "cells",
        "cores",
        "implementation",
        "tasks x threads",
        "tasks per device",
        "walls",
        "block",
        "GF/s",
        f"step ({unit})",
        "95 %",
        "spread",
        "check",
        "notes",
    ]
    lines = []
    for point, row in measured.items():
        spread = f"{100 * (row.step.high - row.step.low) / row.step.value:.0f} %"
        name = f"{point.letter} {VERSIONS[point.letter].name}"
        settings = [point.split, tasks_per_device(point, row), point.walls or "", point.block]
        times = [
            f"{speed(point, row):.2f}",
            tables.number(row.step.value * factor),
            tables.interval(row.step, factor=factor),
        ]
        notes = "; ".join(filter(None, ((remarks or {}).get(point, ""), row.notes())))
        lines.append([f"{point.cells}^3", point.cores, name, *settings, *times, spread, row.verification, notes])
    return tables.markdown(lines, headers, right=("cores", "GF/s", headers[8], "spread"))


def _gains_table(measured: Measured, options: Options) -> str:
    note = (
        "Times of the second over times of the first, paired by launch, each at the setting that is the fastest in the "
        "other launches. C and D against B: settings with more than one task."
    )
    lines = [line for group in groups(measured) for gain in GAINS if (line := _gain_line(group, gain, options))]
    headers = ["cells", "cores", "", "speed", "95 %", "here", "published"]
    return f"{note}\n\n{tables.markdown(lines, headers, right=('cores', 'speed'))}"


def _gain_line(group: Group, gain: Gain, options: Options) -> list | None:
    slower, faster = gain.slower(group), gain.faster(group)
    if not slower.keys() & faster.keys():
        return None
    ratio = stats.ratio_of_launches(slower, faster)
    verdict = stats.verdict_text(ratio, "faster", "slower", least_launches=2)
    ends = tables.interval(ratio, "{:.3f}".format)
    stated = EXPECTED.get(gain.name, "") or (stated_gain(gain) if is_published(group, options) else "")
    return [f"{group.cells}^3", group.cores, gain.name, f"{ratio.value:.3f}", ends, verdict, stated]


def is_published(group: Group, options: Options) -> bool:
    """Return whether stated speeds may stand next to a group: the paper's size on one whole node with a GPU."""
    side = next(r["value"] for r in published("white2011", "stated_results") if r["quantity"] == "points_per_side")
    return is_on_gpu(options) and group.cells == int(side) and group.cores == options.cores


def stated_best(parameter: str) -> str:
    """Return the best values of a tuned parameter on the paper's GPU machines, such as `32 on Lens, 32 on Yona`."""
    rows = (r for r in published("white2011", "tuning") if r["parameter"] == parameter)
    return ", ".join(f"{r['best']} on {r['system'].capitalize()}" for r in rows)


def _blocks_table(measured: Measured, options: Options) -> str:
    """Return GF/s of E by threads of a block in x and y: figures 7 and 8."""
    shaped: dict[tuple[int, int, int], float] = {}
    for point, row in measured.items():
        if point.block:
            x, y = map(int, point.block.split("x"))
            shaped[point.cells, y, x] = speed(point, row)
    widths = _sorted(x for _, _, x in shaped)
    lines = [
        [f"{cells}^3", y, *(_rate(shaped.get((cells, y, x))) for x in widths)]
        for cells, y in _sorted((cells, y) for cells, y, _ in shaped)
    ]
    stated = f"Published best: x {stated_best('gpu block x')}; y {stated_best('gpu block y')}."
    note = stated * any(is_published(group, options) for group in groups(measured))
    return _grid_table(lines, ["cells", "threads in y", *(f"GF/s, {x} in x" for x in widths)], note)


def _boxes_table(measured: Measured, options: Options) -> str:
    """Return GF/s of H and I by tasks x threads and layers of the box: figures 11 and 12."""
    found = {p: speed(p, row) for p, row in measured.items() if p.letter in BOXES}
    thicknesses = _sorted(p.walls for p in found)
    at = {(p.cells, p.cores, p.letter, p.tasks, p.threads, p.walls): rate for p, rate in found.items()}
    lines = [
        [f"{key[0]}^3", key[1], key[2], f"{key[3]} x {key[4]}", *(_rate(at.get((*key, w))) for w in thicknesses)]
        for key in dict.fromkeys(k[:-1] for k in at)
    ]
    headers = ["cells", "cores", "", "tasks x threads", *(f"GF/s, {w} layer{'s' * (w > 1)}" for w in thicknesses)]
    stated = f"Published best: {stated_best('box thickness')}."
    note = stated * any(is_published(group, options) for group in groups(measured))
    return _grid_table(lines, headers, note)


def _sorted(values: Iterable) -> list:
    return sorted(set(values))


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _grid_table(lines: Sequence[Sequence], headers: Sequence[str], note: str) -> str:
    if not lines:
        return ""
    return "\n\n".join(filter(None, (tables.markdown(lines, headers, right=headers[1:]), note)))
