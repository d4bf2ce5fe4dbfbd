"""Timelines of the ranks: seconds by phase and by MPI call, and the time for which each rank was blocked."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from haloscope.report import tables

BLOCKED = ("wait", "complete", "barrier")  # operations that end only when another rank has done something
MOST_RANKS = 16  # listed individually; of more, only least, mean and most


def ranks_of(found: Iterable[dict]) -> dict[int, dict]:
    """Add up the timelines of some records, by rank: measured_s, phases_s, operations_s, mpi."""
    total: dict[int, dict] = {}
    for record in found:
        for entry in record.get("timeline", {}).get("ranks", []):
            none = {"measured_s": 0.0, "phases_s": defaultdict(float), "operations_s": defaultdict(float), "mpi": {}}
            mine = total.setdefault(entry["rank"], none)
            mine["measured_s"] += entry["measured_s"]
            for part in ("phases_s", "operations_s"):
                for name, seconds in entry[part].items():
                    mine[part][name] += seconds
            for call in entry["mpi"]:
                key = (call["during"], call["call"], call["role"])
                sums = mine["mpi"].setdefault(key, {"calls": 0, "seconds": 0.0})
                sums["calls"] += call["calls"]
                sums["seconds"] += call["seconds"]
    return dict(sorted(total.items()))


def blocked_s(rank: dict) -> float:
    """Return the seconds for which a rank was blocked: in operations that wait, and in waiting MPI calls elsewhere."""
    inside = sum(rank["operations_s"].get(name, 0.0) for name in BLOCKED)
    calls = ((during, role, call["seconds"]) for (during, _, role), call in rank["mpi"].items())
    return float(inside + sum(s for during, role, s in calls if role == "waits" and during not in BLOCKED))


def blocks(during: str, role: str) -> bool:
    """Return whether an MPI call blocks: it waits, or it polls inside an operation that repeats until it succeeds."""
    return role == "waits" or (role == "polls" and during in BLOCKED)


def summary(found: Sequence[dict]) -> str:
    """Return two Markdown tables in seconds over all repetitions: ranks by phase, MPI calls over ranks.

    "" when no record has a timeline.
    """
    ranks = ranks_of(found)
    return f"{_by_phase(ranks)}\n\n{_by_call(ranks)}" if ranks else ""


def _spread(values: Sequence[float]) -> list[float]:
    return [min(values), statistics.mean(values), max(values)]


def _by_phase(ranks: dict[int, dict]) -> str:
    phases = [p for p in tables.PHASES if any(r["phases_s"].get(p) for r in ranks.values())]
    phases += sorted({p for r in ranks.values() for p, s in r["phases_s"].items() if s and p not in tables.PHASES})
    columns = {}
    for rank, r in ranks.items():
        blocked = blocked_s(r)
        times = (r["phases_s"].get(p, 0.0) for p in phases)
        columns[rank] = [r["measured_s"], *times, blocked, blocked / r["measured_s"]]
    lines = [[str(rank), *values] for rank, values in columns.items()] if len(columns) <= MOST_RANKS else []
    spreads = [_spread(values) for values in zip(*columns.values(), strict=True)]
    lines += [[name, *(s[i] for s in spreads)] for i, name in enumerate(("least", "mean", "most"))]
    headers = ["rank", "all (s)", *(f"{p} (s)" for p in phases), "blocked (s)", "blocked"]
    shown = [[line[0], *(f"{v:.4f}" for v in line[1:-1]), f"{100 * line[-1]:.1f} %"] for line in lines]
    return tables.markdown(shown, headers, right=headers)


def _by_call(ranks: dict[int, dict]) -> str:
    none = {"calls": 0, "seconds": 0.0}
    lines = []
    for key in {key for r in ranks.values() for key in r["mpi"]}:
        calls = [r["mpi"].get(key, none) for r in ranks.values()]
        lines.append((key, sum(call["calls"] for call in calls), *_spread([call["seconds"] for call in calls])))
    lines.sort(key=lambda line: (-line[-1], line[0]))
    headers = ["during", "MPI call", "blocks", "calls, all ranks", "least (s)", "mean (s)", "most (s)"]
    shown = [
        [during, call, "yes" if blocks(during, role) else "no", count, *(f"{s:.4f}" for s in spread)]
        for (during, call, role), count, *spread in lines
    ]
    return tables.markdown(shown, headers, right=headers[3:])
