"""Sections on the basis of the records: machines and programs, warnings, choices that did not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from haloscope.records.rows import Row, group_rows
from haloscope.records.text import cell, count_of
from haloscope.report import tables
from haloscope.report.page import Section, Table

FIELDS = {
    "cpu": "processor",
    "cores": "cores",
    "sockets": "sockets",
    "hosts": "hosts",
    "device": "device",
    "mpi_library": "MPI library",
    "mpi_standard": "MPI standard",
    "compiler": "compiler",
    "compiler_flags": "flags of the compiler",
    "build_type": "build",
    "commit": "commit",
    "version": "version of Haloscope",
    "isa": "instruction set",
    "huge_pages": "huge pages",
    "placement": "cores of the ranks",
    "emulated_network": "emulated network",
    "program": "program",
}
MOST_VALUES = 6  # of a field


def section(found: Sequence[dict]) -> Section:
    """Return machines, libraries and warnings of some records."""
    about = [record["environment"] for record in found if "environment" in record]
    lines = []
    for name, title in FIELDS.items():
        values = Counter(_text(e[name]) for e in about if e.get(name) not in (None, "", []))
        if values:
            shown = [value if len(values) == 1 else f"{value} ({n})" for value, n in values.most_common(MOST_VALUES)]
            lines.append(
                [title, "; ".join(shown) + f"; and {len(values) - MOST_VALUES} more" * (len(values) > MOST_VALUES)]
            )
    days = sorted({r["launch"]["time_utc"][:10] for r in found if "time_utc" in r.get("launch", {})})
    lines += [["days", f"{days[0]} to {days[-1]}" if len(days) > 1 else days[0]]] if days else []
    kinds = Counter(record["kind"] for record in found)
    lines.append(["records", "; ".join(f"{count} {kind}" for kind, count in kinds.most_common())])
    return Section("Machine and warnings", warnings(found), tables=[Table(["", "value"], lines)])


def _text(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={part}" for name, part in value.items())
    if isinstance(value, list) and value and isinstance(value[0], list):
        return " | ".join(",".join(map(str, part)) for part in value)
    return ", ".join(map(str, value)) if isinstance(value, list) else cell(value)


def warnings(found: Sequence[dict]) -> list[str]:
    """Return sentences on what limits the worth of the records."""
    rows = group_rows(found)
    made = [*_of_rows(rows), *tables.refusals(found), *tables.networks(found)]
    failed = Counter(str(record.get("reason", "no reason"))[:200] for record in found if record["kind"] == "failed")
    made += [f"{count} failed: {reason}" for reason, count in failed.most_common(MOST_VALUES)]
    return made or ["No warnings."]


def _of_rows(rows: Sequence[Row]) -> list[str]:
    wrong = [row.id for row in rows if row.verification == "failed"]
    named = Counter(note for row in rows for r in row.records for note in set(r.get("warnings", [])))
    counted = {
        f"with WRONG results, such as {wrong[0] if wrong else ''}": len(wrong),
        "with more threads than cores, not ranked": _count(rows, lambda row: row.oversubscribed),
        "on an imitated device, whose times say nothing about a GPU": _count(rows, _is_imitated),
        "without a check against `reference`": _count(rows, lambda row: row.verification == "off"),
        "with one launch: their intervals leave out differences of launches": _count(
            rows, lambda row: len(row.launches) == 1
        ),
        f"of {len(rows)} with repetitions far from the others, which count": _count(rows, lambda row: row.outliers > 0),
    }
    made = [f"{count_of(number, 'choice')} {text}." for text, number in counted.items() if number]
    return made + [f"{text} ({count_of(count, 'record')})" for text, count in named.most_common(MOST_VALUES)]


def _count(rows: Sequence[Row], holds: Callable[[Row], bool]) -> int:
    return sum(map(holds, rows))


def _is_imitated(row: Row) -> bool:
    return any("imitat" in str(record["environment"].get("device", "")).lower() for record in row.records)
