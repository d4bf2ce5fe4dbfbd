"""Comparisons of cells of the 2023 study: coverage, best depths, slow exchanges; of published or measured cells."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from haloscope.records.rows import Row
from haloscope.report import tables
from haloscope.studies import published
from haloscope_studies.valen2023 import timers
from haloscope_studies.valen2023.model import Cell

MACHINES = ("A100", "V100")
PROGRAMS = ("ordered phased", "ordered overlapped", "direct phased", "direct overlapped")
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
BASE = ("ordered phased", 1)  # program and depth that speed-ups refer to (section 9.1)
STUMBLE = 1.5  # direct over ordered message time beyond which a cell is an anomaly
PUBLISHED_RANKS = 4  # with a GPU each
PUBLISHED_ITERATIONS = 2048
PHASED = ("ordered phased", "direct phased")
UNCLEAR = " ?"  # behind a number that the noise may have made
HERE = "measured"  # name of the machine of measured cells

Table = Mapping[tuple[int, str, int], Cell]  # the cells of one machine or launch by side, program and depth


@functools.cache
def published_cells() -> tuple[Cell, ...]:
    """Return the 392 cells of appendix C: 2 x 2 ranks, 2048 iterations."""
    return tuple(
        Cell(
            row["gpu"],
            int(row["side"]),
            row["exchange"],
            row["overlap"] == "1",
            int(row["depth"]),
            PUBLISHED_ITERATIONS,
            (int(row["side"]) // 2, int(row["side"]) // 2),
            {name: float(row[f"{name}_s"]) for name in timers.TERSE},
        )
        for row in published("valen2023", "valen_tables")
    )


@functools.cache
def published_table(machine: str) -> Table:
    """Return the published cells of one GPU type."""
    return by_key(cell for cell in published_cells() if cell.machine == machine)


def by_key(cells: Iterable[Cell]) -> Table:
    """Return the cells of one machine or launch by side, program and depth."""
    return {(cell.side, cell.program, cell.depth): cell for cell in cells}


def times(table: Table, part: str, *keys: tuple[int, str, int]) -> list[float] | None:
    """Return the seconds of a part in some cells, None where a cell is missing."""
    return [table[key].times[part] for key in keys] if all(key in table for key in keys) else None


def is_published(row: Row) -> bool:
    """Return whether a run has the thesis' ranks and steps, and fields that no imitated device holds."""
    request = row.request
    return (request["ranks"], request["steps"], request.get("device") == "host") == (
        PUBLISHED_RANKS,
        PUBLISHED_ITERATIONS,
        False,
    )


def measured_cells(rows: Mapping[tuple[int, str, int], Row]) -> list[Cell]:
    """Return measured rows as cells, in seconds per repetition: (side, program, depth) -> row, timers as mean over
    ranks.
    """
    return [_measured_cell(key, row.request, timers.thesis_timers(row)) for key, row in rows.items()]


def tables_by_launch(rows: Mapping[tuple[int, str, int], Row]) -> dict[str, Table]:
    """Return the cells of each launch that all rows have: (side, program, depth) -> row, as in `measured_cells`."""
    by_row = {key: timers.timers_by_launch(row) for key, row in rows.items()}
    common = [launch for launch in next(iter(by_row.values()), {}) if all(launch in one for one in by_row.values())]
    return {
        launch: {key: _measured_cell(key, rows[key].request, timed[launch]) for key, timed in by_row.items()}
        for launch in common
    }


def _measured_cell(key: tuple[int, str, int], request: Mapping, times: Mapping[str, float]) -> Cell:
    side, program, depth = key
    exchange, schedule = program.split()
    across, down = request["process_grid"]
    local = (-(-side // down), -(-side // across))  # the largest rank's
    return Cell(HERE, side, exchange, schedule == "overlapped", depth, request["steps"], local, times)


def pairs(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Return (phased, overlapped) of each machine, side, exchange and depth that has both."""
    return _matched(cells, lambda c: (c.machine, c.side, c.exchange, c.depth), lambda c: c.overlapped)


def _matched(
    cells: Sequence[Cell], key: Callable[[Cell], tuple], second: Callable[[Cell], bool]
) -> list[tuple[Cell, Cell]]:
    ends = {key(c): c for c in cells if second(c)}
    return [(c, ends[key(c)]) for c in cells if not second(c) and key(c) in ends]


def groups(cells: Sequence[Cell], *names: str) -> dict[tuple, list[Cell]]:
    """Return cells by the values of some of their properties."""
    found: dict[tuple, list[Cell]] = defaultdict(list)
    for cell in cells:
        found[tuple(getattr(cell, name) for name in names)].append(cell)
    return dict(found)


def coverage(phased: Cell, overlapped: Cell) -> float | None:
    """Return the part of the phased run's communication that overlap saves, 0.3 = 30 %; negative where overlap costs.

    Communication is message + desync + unpack; None where it took no time. Source: Valen 2023, section 5.5, tables 5.1
    and 5.2 (headed "message + desync", computed with unpack).
    """
    if not phased.communication:
        return None
    return (phased.times["execution"] - overlapped.times["execution"]) / phased.communication


def first_uncovered(cells: Sequence[Cell]) -> int | None:
    """Return the smallest depth at which the inner sweep is shorter than the communication it should hide, or None.

    cells: of one machine, side and exchange; inner is of the overlapped run, communication of the phased one.
    """
    return min((p.depth for p, o in pairs(cells) if o.times["inner"] < p.communication), default=None)


def coverage_table(cells: Sequence[Cell], exchange: str = "ordered", unclear: Collection[tuple] = ()) -> str:
    """Return coverage in percent by machine, side and depth, and the first uncovered depth (section 9.2).

    unclear: (side, exchange, depth) of runs that cannot be distinguished, which the table marks.
    """
    chosen = [c for c in cells if c.exchange == exchange]
    depths = sorted({c.depth for c in chosen})
    lines = []
    for (machine, side), own in groups(chosen, "machine", "side").items():
        covered = {
            p.depth: f"{100 * share:.2f}{UNCLEAR * ((side, exchange, p.depth) in unclear)}"
            for p, o in pairs(own)
            if (share := coverage(p, o)) is not None
        }
        lines.append([machine, side, *(covered.get(d, "") for d in depths), first_uncovered(own) or "none"])
    headers = ["machine", "side", *(f"depth {d}" for d in depths), "communication outlasts inner from depth"]
    note = "\n\nNegative where the overlapped run took longer than the phased one."
    note += f"{UNCLEAR}: the two runs cannot be distinguished." if unclear else ""
    return tables.markdown(lines, headers, right=headers[1:-1]) + note


def best_depths(cells: Sequence[Cell]) -> dict[str, Cell]:
    """Return the fastest cell of each program and, under "all", of all programs; cells: of one machine and side."""
    found = {program: own for (program,), own in groups(cells, "program").items()} | {"all": cells}
    return {name: min(own, key=lambda c: c.times["execution"]) for name, own in found.items()}


def speedup(cells: Sequence[Cell], cell: Cell) -> float | None:
    """Return the speed-up of a cell over ordered phased at depth 1 of the same cells, None without that cell."""
    base = next((c for c in cells if (c.program, c.depth) == BASE), None)
    return base.times["execution"] / cell.times["execution"] if base else None


def best_table(cells: Sequence[Cell]) -> str:
    """Return the best depth and time of each program, the best of all and its speed-up, by machine and side (section
    9.1).
    """
    lines = []
    for (machine, side), own in groups(cells, "machine", "side").items():
        best = best_depths(own)
        times = [f"{best[p].times['execution']:.4f} ({best[p].depth})" if p in best else "" for p in PROGRAMS]
        gain = speedup(own, best["all"])
        lines.append(
            [machine, side, *times, f"{best['all'].program} ({best['all'].depth})", f"{gain:.3f}" if gain else ""]
        )
    headers = ["machine", "side", *(f"{p}, s (depth)" for p in PROGRAMS), "best of all (depth)", "speed-up"]
    return tables.markdown(lines, headers, right=("side", "speed-up"))


def anomalies(cells: Sequence[Cell], threshold: float = STUMBLE) -> list[tuple[Cell, float]]:
    """Return direct phased cells whose message time is more than `threshold` times the ordered one's, with that ratio.

    Both exchanges move the same bytes, so the machine causes a ratio far from 1. Source: Valen 2023, section 5.3.
    """
    phased = [c for c in cells if not c.overlapped]
    both = _matched(phased, lambda c: (c.machine, c.side, c.depth), lambda c: c.exchange == "direct")
    ratios = [(direct, direct.times["message"] / ordered.times["message"]) for ordered, direct in both]
    return [(direct, ratio) for direct, ratio in ratios if ratio > threshold]


def anomaly_table(cells: Sequence[Cell], unclear: Collection[tuple] = ()) -> str:
    """Return the anomalies by machine, each as side/depth with its ratio.

    unclear: (side, depth) whose ratio has an interval that reaches below the limit, which the table marks.
    """
    found = groups([c for c, _ in anomalies(cells)], "machine")
    ratios = {(c.machine, c.side, c.depth): ratio for c, ratio in anomalies(cells)}
    lines = []
    for machine in dict.fromkeys(c.machine for c in cells):
        own = sorted(found.get((machine,), []), key=lambda c: (c.side, c.depth))
        listed = ", ".join(
            f"{c.side}/{c.depth} ({ratios[c.machine, c.side, c.depth]:.1f}x){UNCLEAR * ((c.side, c.depth) in unclear)}"
            for c in own
        )
        lines.append([machine, len(own), listed or "none"])
    headers = ["machine", "cells", f"side/depth with direct message > {STUMBLE:g} x ordered"]
    note = f"\n\n{UNCLEAR}: the interval of the ratio reaches below {STUMBLE:g}." if unclear else ""
    return tables.markdown(lines, headers, right=["cells"]) + note
