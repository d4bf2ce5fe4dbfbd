"""Tables like appendix C of the 2023 thesis, and its timers next to the same runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from haloscope.records.rows import Row
from haloscope.report import tables
from haloscope_studies.valen2023 import comparisons, timers

WAITING = "Overlapped, unpack, message and desync hold the wait for the inner sweep: compare their sum only."


def table(side: int, program: str, rows: Mapping[int, Row]) -> str:
    """Return times per run of `steps` iterations by depth, next to the thesis' where runs have its ranks and steps.

    Execution as mean, standard deviation and count over all repetitions; timers as mean over ranks.
    """
    return "\n\n".join(filter(None, (_times(rows), _next_to_the_thesis(side, program, rows))))


def _times(rows: Mapping[int, Row]) -> str:
    shown = [name for name in timers.TERSE if name != "execution"] + ["rest"]
    unit, factor = tables.unit(row.request["steps"] * row.step.value for row in rows.values())
    headers = ["depth", f"execution ({unit})", "sd", "count", *shown]
    lines = []
    for depth, row in rows.items():
        runs = [row.request["steps"] * step * factor for launch in row.launches.values() for step in launch]
        parts = timers.thesis_timers(row, statistics.mean)
        spread = tables.number(statistics.stdev(runs)) if len(runs) > 1 else ""
        line = [depth, tables.number(statistics.mean(runs)), spread, len(runs)]
        line += [tables.number(parts[name] * factor) for name in shown]
        lines.append([*line, row.verification, row.notes()])
    return tables.markdown(lines, [*headers, "check", "notes"], right=headers)


def _next_to_the_thesis(side: int, program: str, rows: Mapping[int, Row]) -> str:
    """Return the eight timers of runs and of appendix C, in seconds; "" where no run has a counterpart there."""
    lines = []
    for depth, row in rows.items():
        printed = published_timers(side, program, depth) if comparisons.is_published(row) else {}
        sources = {"here": timers.thesis_timers(row, statistics.mean)} | printed if printed else {}
        lines += [[depth, name, *(f"{times[part]:.4f}" for part in timers.TERSE)] for name, times in sources.items()]
    if not lines:
        return ""
    found = tables.markdown(lines, ["depth", "seconds", *timers.TERSE], right=["depth", *timers.TERSE])
    return f"{found}\n\n{WAITING}" if program.endswith("overlapped") else found


def published_timers(side: int, program: str, depth: int) -> dict[str, Mapping[str, float]]:
    """Return the thesis' timers of a cell by GPU type, in seconds; empty if it has no such cell."""
    found = {
        machine: comparisons.published_table(machine).get((side, program, depth)) for machine in comparisons.MACHINES
    }
    return {machine: cell.times for machine, cell in found.items() if cell}
