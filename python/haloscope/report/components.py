"""Components of a step's time over ranks, named timers, and the rule that composes a walltime from them.

The processes that compute longest wait least. So the maximum over ranks of components without waiting and the minimum
of components with waiting for others add up to the walltime (Davis 2017, section 5.2).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from haloscope import records
from haloscope.records.rows import Row
from haloscope.report import tables

LARGEST = ("compute", "memory", "update_boundary", "rest")  # work of a rank alone
LEAST = ("point_to_point", "collectives", "barrier")  # these include waiting for other ranks
COMPONENTS = LARGEST[:3] + LEAST + LARGEST[3:]
OVER_RANKS = ("min", "q1", "mean", "q3", "max")


def component(found: Sequence[Mapping], name: str, statistic: str) -> float:
    """Return seconds per step of a component by a statistic over ranks, the median over launches; 0 where not timed."""
    return float(statistics.median(r.get("components_s", {}).get(name, {}).get(statistic, 0.0) for r in found))


def step_time(found: Sequence[Mapping]) -> float:
    """Return the mean seconds per step of the repetitions that the timers counted; the median over launches."""
    return statistics.median(statistics.fmean(records.step_times(r)) for r in found)


def statistic_of(name: str) -> str:
    """Return the statistic over ranks by which a component counts: `max` for the work of a rank alone, `min` for
    components that include waiting. Source: section 5.2."""
    return "min" if name in LEAST else "max"


def counting(found: Sequence[Mapping]) -> dict[str, float]:
    """Return seconds per step of every component, each by the statistic over ranks that counts."""
    return {name: component(found, name, statistic_of(name)) for name in COMPONENTS}


def composed(found: Sequence[Mapping]) -> float:
    """Return seconds per step by the rule: the sum of all components, each by the statistic over ranks that counts."""
    return sum(counting(found).values())


def named_share(found: Sequence[Mapping]) -> float:
    """Return the part of the walltime that named timers account for, in the mean over ranks, 0 to 1."""
    whole = sum(component(found, name, "mean") for name in COMPONENTS)
    return 1 - component(found, "rest", "mean") / whole if whole else 0.0


def overview(table: Sequence[Row]) -> str:
    """Return a table of rows: components in ms per step, least to largest over ranks, and the composed walltime."""
    used = [name for name in COMPONENTS if any(component(row.records, name, "max") > 0 for row in table)]
    headers = ["configuration", "step (ms)", *(name.replace("_", " ") for name in used), "composed", "off", "named"]
    lines = []
    for row in table:
        measured, whole = step_time(row.records), composed(row.records)
        ends = ([component(row.records, name, statistic) for statistic in ("min", "max")] for name in used)
        spans = [" .. ".join(tables.number(1e3 * end) for end in pair) for pair in ends]
        off, named = f"{whole / measured - 1:+.1%}", f"{named_share(row.records):.2%}"
        lines.append([row.id, tables.number(1e3 * measured), *spans, tables.number(1e3 * whole), off, named])
    note = (
        "Least .. largest over ranks. Composed: the largest of components without waiting, the least of components "
        "with waiting (Davis 2017, section 5.2). Named: the part of the time that timers account for."
    )
    return f"{tables.markdown(lines, headers, right=headers[1:])}\n\n{note}"


def timers(found: Sequence[Mapping]) -> str:
    """Return a table of one row's named timers that ran: calls per step, milliseconds per step over ranks, and events
    per step, the mean over ranks, where they were counted."""
    first = found[0]["timers"]
    events = list(first[0].get("events", {}))
    titles = [f"{name} (1000)" for name in events]
    headers = ["stage", "timer", "component", "calls", *OVER_RANKS, "of the step", *titles]
    whole = step_time(found)
    lines = []
    for number, timer in enumerate(first):
        spread = {s: statistics.median(r["timers"][number]["seconds"][s] for r in found) for s in OVER_RANKS}
        if spread["max"] == 0:
            continue
        names = [timer["stage"], timer["name"], timer["component"].replace("_", " ")]
        times = [*(tables.number(1e3 * seconds) for seconds in spread.values()), f"{spread['mean'] / whole:.1%}"]
        counts = [tables.number(1e-3 * timer["events"][name]) for name in events]
        lines.append([*names, tables.number(timer["calls"]), *times, *counts])
    return tables.markdown(lines, headers, right=headers[3:])


def counted(found: Sequence[Mapping]) -> list[str]:
    """Return sentences on the events that this machine does not count, and on the clock; none where not requested."""
    environment = found[0]["environment"]
    reasons: dict[str, list[str]] = {}
    for name, reason in environment.get("events_absent", {}).items():
        reasons.setdefault(reason, []).append(name)
    lines = [f"Not counted: {', '.join(names)}: {reason}." for reason, names in reasons.items()]
    clock = environment.get("clock_mhz", {})
    if "mean" in clock:
        lines.append(
            f"Clock of rank 0: {clock['mean']:.0f} MHz in the mean, {clock['least']:.0f} to {clock['most']:.0f} in "
            f"{clock['samples']} samples of {clock['source']}."
        )
    elif clock:
        lines.append(f"Clock: {clock['absent']}.")
    return lines
