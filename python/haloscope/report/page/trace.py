"""The section on a trace: what every rank did over time."""

from __future__ import annotations

from collections.abc import Sequence

from haloscope.records.traces import Span, lines_of
from haloscope.report.page import Chart, Section, Table, label
from haloscope.report.page.marks import PHASE_COLOURS, height_of

MOST_SPANS = 6000


def section(spans: Sequence[Span]) -> Section:
    """Return the timeline of a trace, which can be zoomed; of a long one the first spans."""
    drawn = sorted(spans, key=lambda span: span.start_us)[:MOST_SPANS]
    start = drawn[0].start_us
    names = sorted({span.name for span in drawn})
    traces = [_bars([span for span in drawn if span.name == name], start, place) for place, name in enumerate(names)]
    lanes = [_lane(*key) for key in sorted(lines_of(drawn))]
    layout = {
        "barmode": "overlay",
        "xaxis": {"title": {"text": "us"}},
        "yaxis": {"autorange": "reversed", "type": "category", "categoryarray": lanes},
    }
    table = Table(["rank", "line", "operation", "start (us)", "us"], [_numbers(span, start) for span in drawn])
    more = f" The first {MOST_SPANS} of {len(spans)} operations are drawn." * (len(spans) > MOST_SPANS)
    caption = f"Traced: the last repetition of a run, by the clock of rank 0.{more}"
    height = height_of(len(lanes), each=26, around=150)
    return Section(
        "Timeline", [], [Chart("Operations and MPI calls of the ranks", caption, traces, layout, table, height)]
    )


def _bars(spans: Sequence[Span], start: float, place: int) -> dict:
    """Return the trace of all spans of one name."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": label(spans[0].name),
        "y": [_lane(span.rank, span.line) for span in spans],
        "base": [span.start_us - start for span in spans],
        "x": [span.end_us - span.start_us for span in spans],
        "marker": {
            "color": PHASE_COLOURS[place % len(PHASE_COLOURS)],
            "pattern": {"shape": ("", "/", ".")[place // 9 % 3]},
        },
        "customdata": [span.name for span in spans],
        "hovertemplate": f"{label(spans[0].name)}: %{{x:.4g}} us<extra>%{{y}}</extra>",
    }


def _lane(rank: int, line: str) -> str:
    return label(f"rank {rank} {line}")


def _numbers(span: Span, start: float) -> list:
    return [span.rank, span.line, span.name, span.start_us - start, span.end_us - span.start_us]
