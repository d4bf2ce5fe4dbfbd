"""The ranks over time: bars in the terminal, OTF2 archives, the timeline of a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haloscope.errors import UsageError
from haloscope.records import traces
from haloscope.records.traces import Span
from haloscope.report import bars, otf2_archive
from haloscope.report.page import trace as page_of_trace
from test_records import measurement, write

SPANS = [
    Span(0, "comm", "wait", 0.0, 60.0),
    Span(0, "main", "sweep", 60.0, 100.0),
    Span(0, "mpi", "MPI_Testall", 5.0, 55.0),
    Span(1, "main", "sweep", 0.0, 100.0),
]


def chrome(spans) -> list[dict]:
    """Events as `haloscope run --trace` writes them."""
    lanes = {key: number for number, key in enumerate(sorted({(s.rank, s.line) for s in spans}))}
    named = [
        {"ph": "M", "name": "thread_name", "pid": rank, "tid": tid, "args": {"name": line}}
        for (rank, line), tid in lanes.items()
    ]
    return named + [
        {
            "ph": "X",
            "name": s.name,
            "pid": s.rank,
            "tid": lanes[s.rank, s.line],
            "ts": s.start_us,
            "dur": s.end_us - s.start_us,
        }
        for s in spans
    ]


def test_a_trace_is_read_as_it_was_written(tmp_path):
    for form in (chrome(SPANS), {"traceEvents": chrome(SPANS)}):
        (tmp_path / "t.json").write_text(json.dumps(form))
        assert traces.read(tmp_path / "t.json") == SPANS


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        "3",
        "[1]",
        '[{"ph": "X"}]',
        '[{"ph": "X", "name": "a", "pid": -1, "tid": 0, "ts": 0, "dur": 1}]',
        "x",
    ],
)
def test_a_file_of_another_kind_is_refused(text, tmp_path):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(UsageError, match="run --trace"):
        traces.read(tmp_path / "t.json")


def test_each_column_has_the_operation_that_takes_most_of_it():
    lines = bars.of_trace(SPANS, 10).splitlines()
    assert lines[2:6] == [
        "rank 0 comm |cccccc....",
        "rank 0 main |......bbbb",
        "rank 0 mpi  |aaaaaa....",
        "rank 1 main |bbbbbbbbbb",
    ]
    assert lines[-1] == "100 us, 10 us a column; a MPI_Testall  b sweep  c wait"


def test_bars_of_records_are_as_long_as_the_ranks_were_busy(haloscope, tmp_path):
    record = measurement()
    record["timeline"] = {
        "ranks": [
            {"rank": rank, "measured_s": 4.0, "phases_s": phases, "operations_s": {}, "mpi": []}
            for rank, phases in enumerate([{"wait": 1.0, "compute": 3.0}, {"wait": 2.0, "compute": 1.0}])
        ]
    }
    file = write(tmp_path / "r.jsonl", record)
    lines = haloscope("timeline", str(file), "--width", "20").out.splitlines()
    assert lines[2:4] == ["rank 0 |aaaaabbbbbbbbbbbbbbb", "rank 1 |aaaaaaaaaabbbbb"]


def test_records_without_timelines_are_refused_with_a_remedy(haloscope, tmp_path):
    result = haloscope("timeline", str(write(tmp_path / "r.jsonl", measurement())))
    assert result.code == 2 and "measure with haloscope run --timeline" in result.err


def events_of(folder: Path) -> list[tuple]:
    otf2 = pytest.importorskip("otf2")
    found = []
    with otf2.reader.open(str(folder / otf2_archive.ANCHOR)) as archive:
        for location, event in archive.events:
            entered = isinstance(event, otf2.events.Enter)
            found.append((location.group.name, location.name, event.time, entered, event.region.name))
    return found


def test_an_otf2_archive_has_every_operation_of_every_rank(haloscope, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(chrome(SPANS)))
    result = haloscope("timeline", str(tmp_path / "t.json"), "--otf2", str(tmp_path / "a"))
    assert result.code == 0
    wanted = {
        (f"rank {s.rank}", s.line, 1000 * at, entered, s.name)
        for s in SPANS
        for at, entered in ((s.start_us, True), (s.end_us, False))
    }
    assert set(events_of(tmp_path / "a")) == wanted
    again = haloscope("timeline", str(tmp_path / "t.json"), "--otf2", str(tmp_path / "a"))
    assert again.code == 2 and "exists" in again.err


TIMES = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted)


@given(st.lists(TIMES, min_size=1, max_size=12))
def test_enters_and_leaves_of_a_line_are_nested_and_in_order(times):
    spans = [Span(0, "main", str(n), float(a), float(b)) for n, (a, b) in enumerate(times)]
    stack, last, entered = [], -1.0, 0
    for at, enters, name in otf2_archive._in_order(spans):
        assert at >= last
        last = at
        if enters:
            stack.append(name)
            entered += 1
        else:
            assert stack.pop() == name
    assert not stack and entered == len(spans)


def test_the_page_has_the_spans_of_every_line():
    [chart] = page_of_trace.section(SPANS).charts
    assert sum(len(trace["x"]) for trace in chart.traces) == len(SPANS) == len(chart.table.lines)
    assert chart.layout["yaxis"]["categoryarray"] == ["rank 0 comm", "rank 0 main", "rank 0 mpi", "rank 1 main"]


def test_a_page_takes_a_trace(haloscope, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(chrome(SPANS)))
    file = write(tmp_path / "r.jsonl", measurement())
    page = tmp_path / "p.html"
    assert haloscope("report", str(file), "--trace", str(tmp_path / "t.json"), "-o", str(page)).code == 0
    assert ">Timeline</h2>" in page.read_text()
