"""Trace files of `--trace`: the spans of every rank, read from the format of Chrome and Perfetto."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haloscope import files
from haloscope.errors import UsageError

NAME, REMEDY = "the trace", "give a file that `haloscope run --trace` wrote"
MOST_RANKS = 1 << 20


@dataclass(frozen=True)
class Span:
    """An operation or an MPI call: its rank, its line (main, comm, mpi or a stream), start and end in us."""

    rank: int
    line: str
    name: str
    start_us: float
    end_us: float


def read(path: Path) -> list[Span]:
    """Return the spans of a trace, by rank, line and start. Raises UsageError for files of another kind."""
    text = files.text_of(path, NAME, REMEDY)
    try:
        value = files.json_of(text)
        events = value.get("traceEvents") if isinstance(value, dict) else value
        found = _spans(events)
    except (files.Unfit, KeyError, TypeError, AttributeError) as fault:
        raise UsageError(f"cannot read {NAME} {path}: it is not a trace ({fault}); {REMEDY}") from None
    if not found:
        raise UsageError(f"{NAME} {path} has no operation; {REMEDY}")
    return sorted(found, key=lambda span: (span.rank, span.line, span.start_us))


def _spans(events: Any) -> list[Span]:
    named = [event for event in events if event["ph"] == "M" and event["name"] == "thread_name"]
    lines = {(event["pid"], event["tid"]): str(event["args"]["name"]) for event in named}
    return [_span(event, lines) for event in events if event["ph"] == "X"]


def _span(event: dict, lines: dict[tuple, str]) -> Span:
    start, length = float(event["ts"]), float(event["dur"])
    rank = event["pid"]
    if not isinstance(rank, int) or not 0 <= rank < MOST_RANKS or length < 0:
        raise files.Unfit(f"an event has rank {rank!r:.20} and lasts {length:g} us")
    return Span(rank, lines[rank, event["tid"]], str(event["name"]), start, start + length)


def lines_of(spans: Sequence[Span]) -> dict[tuple[int, str], list[Span]]:
    """Return the spans by rank and line, in order."""
    found: dict[tuple[int, str], list[Span]] = {}
    for span in spans:
        found.setdefault((span.rank, span.line), []).append(span)
    return found
