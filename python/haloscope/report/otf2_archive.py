"""Traces as OTF2 archives, for Vampir, Scalasca and Score-P's tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from haloscope.errors import UnavailableError, UsageError
from haloscope.records.traces import Span, lines_of

PER_US = 1000  # ticks
ANCHOR = "traces.otf2"  # the file to open


def write(spans: Sequence[Span], folder: Path) -> Path:
    """Write an archive into a new folder, a process per rank and a location per line; return the file to open.

    Raises UnavailableError without the package otf2, UsageError for a folder that exists.
    """
    try:
        import otf2
    except ImportError:
        raise UnavailableError("OTF2 needs a package: pip install 'haloscope[otf2]'") from None
    if folder.exists():
        raise UsageError(f"{folder} exists, and an OTF2 archive is a new folder; choose another name")
    origin = min(span.start_us for span in spans)
    with otf2.writer.open(str(folder), timer_resolution=PER_US * 1_000_000) as archive:
        defined = archive.definitions
        root = defined.system_tree_node("haloscope")
        regions = {name: _region(otf2, defined, name) for name in sorted({span.name for span in spans})}
        groups = {
            rank: defined.location_group(f"rank {rank}", system_tree_parent=root)
            for rank in sorted({span.rank for span in spans})
        }
        for (rank, line), of_line in lines_of(spans).items():
            events = archive.event_writer(line, group=groups[rank])
            for at, entered, name in _in_order(of_line):
                record = events.enter if entered else events.leave
                record(round(PER_US * (at - origin)), regions[name])
    return folder / ANCHOR


def _region(otf2: Any, defined: Any, name: str) -> Any:
    """Return the definition of an operation, or of a function of MPI."""
    paradigm = otf2.Paradigm.MPI if name.startswith("MPI_") else otf2.Paradigm.USER
    return defined.region(name, paradigm=paradigm)


def _in_order(spans: Sequence[Span]) -> Iterator[tuple[float, bool, str]]:
    """Yield entering and leaving of the spans of one line, nested as they must be: an inner span ends first."""
    inside: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start_us, -span.end_us)):
        while inside and inside[-1].end_us <= span.start_us:
            yield inside[-1].end_us, False, inside.pop().name
        end = min(span.end_us, inside[-1].end_us) if inside else span.end_us
        inside.append(Span(span.rank, span.line, span.name, span.start_us, end))
        yield span.start_us, True, span.name
    while inside:
        yield inside[-1].end_us, False, inside.pop().name
