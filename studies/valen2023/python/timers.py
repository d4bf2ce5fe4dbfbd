"""The eight timers of Valen 2023, from the phases of records."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from haloscope.records.rows import Row

TERSE = ("execution", "pack", "unpack", "inner", "outer", "primary", "message", "desync")


Average = Callable[[Sequence[float]], float]


def thesis_timers(row: Row, average: Average = statistics.median) -> dict[str, float]:
    """Return the eight timers of the 2023 study and `rest`, as `timers_by_launch`; averaged over launches."""
    launches = list(timers_by_launch(row, average).values())
    return {name: average([timers[name] for timers in launches]) for name in launches[0]}


def timers_by_launch(row: Row, average: Average = statistics.median) -> dict[str, dict[str, float]]:
    """Return, for each launch, the eight timers of the 2023 study in seconds per repetition (its "run").

    message = send + wait + copies to itself (the study sends those as messages too), primary = full sweeps; copies
    between device and host belong to packing and unpacking. Operations of one timer follow each other on one stream of
    a device, so that their sum is the larger of the streams' times. `rest` is the time that no timer covers; on a
    device, no timer but inner. average: over repetitions, for the execution; the mean makes the parts, which are means
    over ranks and repetitions, sum up to it. Source: Valen 2023, section 3.6, appendix C.
    """
    steps = row.request["steps"]
    return {
        record["launch"]["id"]: {
            name: steps * seconds
            for name, seconds in _parts_of_step(record, average(row.launches[record["launch"]["id"]])).items()
        }
        for record in row.records
    }


def _parts_of_step(record: Mapping, execution: float) -> dict[str, float]:
    def total(*phases: str) -> float:
        return float(sum(record.get("phases_s", {}).get(phase, {}).get("mean", 0.0) for phase in phases))

    parts = {
        "execution": execution,
        "pack": total("pack", "d2h"),
        "unpack": total("h2d", "unpack"),
        "inner": total("inner"),
        "outer": total("outer"),
        "primary": total("compute"),
        "message": total("send", "wait", "copy"),
        "desync": total("desync"),
    }
    rest = uncovered(parts) if record["request"].get("device") else total("rest")
    return parts | {"rest": rest}


def uncovered(times: Mapping[str, float]) -> float:
    """Return the time of the execution that no timer but inner covers; on a device, other work hides inner."""
    return times["execution"] - sum(times[name] for name in TERSE if name not in ("execution", "inner"))


def messages(row: Row) -> dict[str, list[float]]:
    """Return the seconds per repetition that messages take, by launch; as in `timers_by_launch`."""
    return {launch: [timers["message"]] for launch, timers in timers_by_launch(row).items()}


def terse(table: Sequence[Row]) -> str:
    """Return comma-separated lines for scripts: the run, then the 2023 study's timers in seconds per repetition."""
    lines = [",".join(("height", "length", "depth", "iterations", "ranks", "schedule", "strategy", *TERSE))]
    for row in table:
        cells, timers = row.request["cells"], thesis_timers(row)
        start = [cells[1] if len(cells) > 1 else 1, cells[0], row.request["depth"], row.request["steps"]]
        start += [row.request["ranks"], row.request["schedule"], row.request["strategy"].replace(",", "+")]
        lines.append(",".join([*map(str, start), *(f"{timers[name]:.6f}" for name in TERSE)]))
    return "\n".join(lines)
