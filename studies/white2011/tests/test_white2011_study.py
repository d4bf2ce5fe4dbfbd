"""The study of 2011 on grids small enough for a test."""

from __future__ import annotations

import pytest

from haloscope import records
from haloscope.measure import space
from haloscope.records.rows import group_rows
from haloscope.studies import Options
from haloscope_studies.white2011 import study as white2011
from reports import SHORT, section


@pytest.mark.ids("W14", "W15", "W17", "W18")
def test_white2011_runs_all_nine_implementations_where_a_device_is(haloscope):
    result = haloscope("study", "white2011", "--sizes", "20", "--device", "host", *SHORT)
    assert result.code == 0, result.err
    for letter, name in {
        "A": "single task",
        "E": "GPU resident",
        "F": "GPU and bulk",
        "G": "GPU and MPI, streams",
        "H": "CPU and GPU, bulk",
        "I": "CPU and GPU, full overlap",
    }.items():
        line = next(line for line in result.out.splitlines() if f"| {letter} {name}" in line)
        assert "passed" in line


@pytest.mark.ids("W20", "W23", "W25")
def test_white2011_reports_all_points_the_best_the_gains_and_the_code_size(haloscope):
    result = haloscope("study", "white2011", "--sizes", "16", *SHORT)
    assert result.code == 0, result.err
    found = records.read("r.jsonl").records
    assert all(r["verification"]["status"] == "passed" for r in found)
    points, best = section(result.out, "All points"), section(result.out, "Best per core count")
    assert {row[2][0] for row in points} == {"A", "B", "C", "D"}
    assert all(row[4] and row[6] and row[7].endswith("%") for row in points)
    for row in best:
        rivals = [r for r in points if r[1:3] == row[1:3] and "oversubscribed" not in r[9]]
        assert float(row[5]) == min(float(r[5]) for r in rivals)
    gains = section(result.out, "Gains of overlap")
    assert {row[2] for row in gains} >= {"C over B"}
    assert all(row[5] in ("faster", "slower", "cannot tell apart") and row[6] for row in gains)
    lines = section(result.out, "Lines of code per schedule")
    assert [row[0][0] for row in lines] == ["A", "B", "C", "D"]
    assert lines[0][3] == "1.00" and all(int(row[2]) > 0 for row in lines)


def test_the_best_split_never_is_an_oversubscribed_one():
    def row(seconds, crowded):
        from test_records import measurement

        record = measurement(seconds=[seconds])
        record["environment"]["oversubscribed"] = crowded
        return group_rows([record])[0]

    measured = {(16, 2, "D", 1, 2): row(2.0, False), (16, 2, "D", 2, 2): row(1.0, True)}
    assert list(white2011.best_of(measured)) == [(16, 2, "D", 1, 2)]


def test_splits_that_cannot_be_distinguished_from_the_best_are_named():
    def row(name, *launches):
        from test_records import measurement

        return group_rows([measurement(name, f"launch-{n}", list(steps)) for n, steps in enumerate(launches)])[0]

    measured = {
        (16, 2, "B", 1, 2): row("a", (1.0, 1.1), (1.2, 1.0), (1.0, 1.0)),
        (16, 2, "B", 2, 1): row("b", (1.1, 1.0), (1.0, 1.1), (1.1, 1.0)),
        (16, 2, "B", 4, 1): row("c", (2.0, 2.1), (2.1, 2.0), (2.0, 2.0)),
    }
    [(best, note)] = white2011.rivals(white2011.best_of(measured), measured).items()
    other = ({(1, 2), (2, 1)} - {best[3:]}).pop()
    assert note == f"{other[0]} x {other[1]}: cannot tell apart"
    alone = {key: r for key, r in measured.items() if key[3] != other[0]}
    assert not white2011.rivals(white2011.best_of(alone), alone)


def test_lines_of_code_leave_out_blanks_and_comments():
    text = "// top\n\nint a;  // tail\n/* block\n   more */\nint b; /* x */ int c;\n\n   \n"
    assert white2011.lines_of_code(text) == 2


def test_one_configuration_serves_all_implementations_that_are_the_same_work():
    plan = white2011.plan(Options(sizes=(16,), seconds=0.1, cores=1))
    assert len(plan.requests) == len({r.id for r in plan.requests})
    assert isinstance(plan, space.Space)


def test_the_full_study_has_the_published_size():
    white = white2011.plan(Options(sizes=(420,), seconds=5.0, cores=12))
    choices = [r.choice for r in white.requests]
    assert {c.shape for c in choices} == {"420x420x420"}
    assert {(c.ranks, c.threads) for c in choices if c.schedule == "bulk"} >= {(12, 1), (6, 2), (1, 12)}
    assert not [c for c in choices if c.schedule == "comm-thread" and c.threads < 2]
