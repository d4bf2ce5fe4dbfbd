"""Measurements of an app for readers: the ranking, then phases, components and timelines where they are requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from haloscope.measure import host_mapping
from haloscope.records.rows import Row, group_rows
from haloscope.report import components, tables, timeline


def texts(found: Sequence[dict], options: Mapping[str, Any]) -> list[str]:
    """Return the tables of records as texts to print in order. options: the options of `haloscope run`."""
    table = group_rows(found)
    if not table:
        return []
    made = [tables.ranking(table, tables.baseline(table, options["baseline"]))]
    if options["statistic"]:
        made.append("\n" + tables.phases(table, options["statistic"]))
    if options["components"]:
        made += _components(table)
    if options["timeline"]:
        made += [f"\n### Timeline of {row.id}\n\n{timeline.summary(row.records)}" for row in table]
    return made


def _components(table: Sequence[Row]) -> list[str]:
    timed = [row for row in table if all("timers" in record for record in row.records)]
    if not timed:
        return ["\nNothing was timed; use --timers on."]
    made = [f"\n### Components, ms per step\n\n{components.overview(timed)}"]
    for row in timed:
        made.append(f"\n### Timers of {row.id}, ms per step over ranks\n\n{components.timers(row.records)}")
        made += [f"\n{line}" for line in components.counted(row.records)]
    return made


def notes(found: Sequence[dict], output: Path) -> list[str]:
    """Return the lines below the tables: configurations not run, emulated networks, mappings, the file of records."""
    about = (*tables.refusals(found), *tables.networks(found), *host_mapping.lines(found))
    return [f"\n{line}" for line in (*about, f"records: {output}")]
