"""`haloscope info` for readers: one table each for machine, devices, transports, schedules, apps, probes of MPI."""

from __future__ import annotations

from haloscope.report import tables


def markdown(facts: dict) -> str:
    """Return the facts of `inventory.gather` as tables."""
    parts = [tables.markdown([[name, value] for name, value in facts["machine"].items()], ["machine", ""])]
    for kind in ("devices", "transports", "schedules", "apps"):
        lines = [[e["name"], e["state"], e["about"]] for e in facts[kind]]
        parts.append(tables.markdown(lines, [kind[:-1], "here", ""]))
    parts.append(tables.markdown(facts["probes"], ["correct behaviour of this MPI", "here", ""]))
    return "\n\n".join(parts)
