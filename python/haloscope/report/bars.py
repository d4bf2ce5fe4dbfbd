"""Ranks as bars of characters in the terminal: over phases, from records, and over time, from a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from haloscope.records.rows import group_rows
from haloscope.records.traces import Span, lines_of
from haloscope.report import tables, timeline
from haloscope.terminal import shown

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
IDLE = "."
MOST_CHOICES, MOST_LINES = 20, 64


def of_records(found: Sequence[dict], width: int) -> str:
    """Return bars of the phases of each rank, for the choices whose records have timelines; "" without any."""
    parts = []
    for row in group_rows(found)[:MOST_CHOICES]:
        if ranks := timeline.ranks_of(row.records):
            phases = [p for p in tables.PHASES if any(r["phases_s"].get(p) for r in ranks.values())]
            letters = dict(zip(phases, LETTERS, strict=False))
            longest = max(r["measured_s"] for r in ranks.values())
            bars = {f"rank {rank}": _phases(r["phases_s"], letters, longest, width) for rank, r in ranks.items()}
            parts.append(_framed(row.id, bars, letters, f"{longest:.4g} s in all repetitions"))
    return "\n\n".join(parts)


def _phases(seconds: Mapping[str, float], letters: Mapping[str, str], longest: float, width: int) -> str:
    """Return one rank's phases side by side, as long as their shares of the longest rank."""
    bar, done = "", 0.0
    for phase, letter in letters.items():
        done += seconds.get(phase, 0.0)
        bar += letter * (round(width * done / longest) - len(bar))
    return bar


def of_trace(spans: Sequence[Span], width: int) -> str:
    """Return a line for each rank and line of a trace: in each column the operation that takes most of its time."""
    names = sorted({span.name for span in spans})
    letters = {name: LETTERS[i % len(LETTERS)] for i, name in enumerate(names)}
    start, end = min(span.start_us for span in spans), max(span.end_us for span in spans)
    step = (end - start) / width or 1.0
    bars = {
        f"rank {rank} {line}": _columns(of_line, letters, start, step, width)
        for (rank, line), of_line in lines_of(spans).items()
    }
    return _framed("Trace", bars, letters, f"{end - start:.4g} us, {step:.3g} us a column")


def _columns(spans: Sequence[Span], letters: Mapping[str, str], start: float, step: float, width: int) -> str:
    taken: list[dict[str, float]] = [{} for _ in range(width)]
    for span in spans:
        first, last = (int((at - start) / step) for at in (span.start_us, span.end_us))
        for column in range(max(first, 0), min(last, width - 1) + 1):
            low, high = start + column * step, start + (column + 1) * step
            if (inside := min(span.end_us, high) - max(span.start_us, low)) > 0:
                taken[column][span.name] = taken[column].get(span.name, 0.0) + inside
    largest = (max(column, key=lambda name: column[name], default="") for column in taken)
    return "".join(letters.get(name, IDLE) for name in largest)


def _framed(title: str, bars: Mapping[str, str], letters: Mapping[str, str], scale: str) -> str:
    """Return bars under a title, with the meaning of their letters."""
    space = max(map(len, bars))
    lines = [f"{name:{space}} |{bar}" for name, bar in list(bars.items())[:MOST_LINES]]
    more = [f"{len(bars) - MOST_LINES} more lines"] * (len(bars) > MOST_LINES)
    meaning = "  ".join(f"{letter} {shown(name, 40)}" for name, letter in letters.items())
    return "\n".join([f"### {shown(title)}", "", *lines, *more, "", f"{scale}; {meaning}"])
