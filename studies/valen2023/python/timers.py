"""The eight timers of Valen 2023, from the phases of records."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from haloscope.records.rows import Row

TERSE = ("execution", "pack", "unpack", "inner", "outer", "primary", "message", "desync")


Average = Callable[[Sequence[float]], float]


def thesis_timers(row: Row, average: Average = statistics.median) -> dict[str, float]:
    """Return the eight timers of the 2023 study in seconds per repetition (its "run"), from our phases.

    message = send + wait + copies to itself (the study sends those as messages too), primary = full sweeps; copies
    between device and host belong to packing and unpacking; `rest` is the time that no timer covers. average: over
    launches, of means over ranks; of all parts, so that they sum up to the whole where it is the mean. Source: Valen
    2023, section 3.6, appendix C.
    """
    steps = row.request["steps"]

    def total(*phases: str) -> float:
        found = ([r.get("phases_s", {}).get(phase, {}).get("mean", 0.0) for r in row.records] for phase in phases)
        return float(steps * sum(map(average, found)))

    parts = {
        "execution": steps * average([average(seconds) for seconds in row.launches.values()]),
        "pack": total("pack", "d2h"),
        "unpack": total("h2d", "unpack"),
        "inner": total("inner"),
        "outer": total("outer"),
        "primary": total("compute"),
        "message": total("send", "wait", "copy"),
        "desync": total("desync"),
    }
    return parts | {"rest": total("rest")}


def messages(row: Row) -> dict[str, list[float]]:
    """Return the seconds per step that messages take, a mean over ranks, by launch; as in `thesis_timers`."""
    found: dict[str, list[float]] = {}
    for record in row.records:
        phases = record.get("phases_s", {})
        seconds = sum(phases.get(name, {}).get("mean", 0.0) for name in ("send", "wait", "copy"))
        found.setdefault(record["launch"]["id"], []).append(seconds)
    return found


def terse(table: Sequence[Row]) -> str:
    """Return comma-separated lines for scripts: the run, then the 2023 study's timers in seconds per repetition."""
    lines = [",".join(("height", "length", "depth", "iterations", "ranks", "schedule", "strategy", *TERSE))]
    for row in table:
        cells, timers = row.request["cells"], thesis_timers(row)
        start = [cells[1] if len(cells) > 1 else 1, cells[0], row.request["depth"], row.request["steps"]]
        start += [row.request["ranks"], row.request["schedule"], row.request["strategy"].replace(",", "+")]
        lines.append(",".join([*map(str, start), *(f"{timers[name]:.6f}" for name in TERSE)]))
    return "\n".join(lines)
