"""Timelines of the ranks: seconds by phase, MPI call and epoch, and the time for which each rank was blocked."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from haloscope.report import tables

BLOCKED = ("wait", "complete", "barrier")  # operations that end only when another rank has done something
NO_EPOCH = {"epochs": 0, "open_s": 0.0, "longest_s": 0.0, "blocked_s": 0.0}
EPOCHS = {  # in the order of the table
    "fence": "fence to fence",
    "access": "access: start to complete",
    "exposure": "exposure: post to wait",
    "lock": "lock to unlock",
    "lock-all": "lock_all to unlock_all",
}
MOST_RANKS = 16  # listed individually; of more, only least, mean and most


def ranks_of(found: Iterable[dict]) -> dict[int, dict]:
    """Add up the timelines of some records, by rank: measured_s, phases_s, operations_s, mpi, epochs."""
    total: dict[int, dict] = {}
    for record in found:
        for entry in record.get("timeline", {}).get("ranks", []):
            none = {"measured_s": 0.0, "phases_s": defaultdict(float), "operations_s": defaultdict(float), "mpi": {}}
            mine = total.setdefault(entry["rank"], none | {"epochs": {}})
            mine["measured_s"] += entry["measured_s"]
            for part in ("phases_s", "operations_s"):
                for name, seconds in entry[part].items():
                    mine[part][name] += seconds
            for call in entry["mpi"]:
                key = (call["during"], call["call"], call["role"])
                sums = mine["mpi"].setdefault(key, {"calls": 0, "seconds": 0.0})
                sums["calls"] += call["calls"]
                sums["seconds"] += call["seconds"]
            for epoch in entry.get("epochs", ()):  # none in older records
                sums = mine["epochs"].setdefault(epoch["kind"], NO_EPOCH.copy())
                sums["longest_s"] = max(sums["longest_s"], epoch["longest_s"])
                for name in ("epochs", "open_s", "blocked_s"):
                    sums[name] += epoch[name]
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
    """Return Markdown tables in seconds over all repetitions: ranks by phase, MPI calls over ranks, epochs over ranks.

    The table of epochs is for one-sided communication. "" when no record has a timeline.
    """
    ranks = ranks_of(found)
    return "\n\n".join(filter(None, (_by_phase(ranks), _by_call(ranks), _by_epoch(ranks)))) if ranks else ""


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


def _by_epoch(ranks: dict[int, dict]) -> str:
    """Return the table of epochs of one-sided communication, "" without any."""
    lines = []
    for kind in (kind for kind in EPOCHS if any(kind in r["epochs"] for r in ranks.values())):
        sums = [r["epochs"].get(kind, NO_EPOCH) for r in ranks.values()]
        count, open_s = (sum(s[name] for s in sums) for name in ("epochs", "open_s"))
        lengths = (1e3 * open_s / count, 1e3 * max(s["longest_s"] for s in sums))
        spread = _spread([s["blocked_s"] for s in sums])
        lines.append([EPOCHS[kind], count, *(f"{ms:.3f}" for ms in lengths), *(f"{s:.4f}" for s in spread)])
    blocked = ["least blocked (s)", "mean blocked (s)", "most blocked (s)"]
    headers = ["epoch", "epochs, all ranks", "mean length (ms)", "longest (ms)", *blocked]
    return tables.markdown(lines, headers, right=headers[1:]) if lines else ""
