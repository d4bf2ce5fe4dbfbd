"""The study of 2011 on grids small enough for a test."""

from __future__ import annotations

import pytest

from haloscope import records
from haloscope.measure import space
from haloscope.records.rows import group_rows
from haloscope.studies import Options
from haloscope_studies.white2011 import code_size
from haloscope_studies.white2011 import study as white2011
from haloscope_studies.white2011.comparisons import best_of
from haloscope_studies.white2011.report import rivals
from haloscope_studies.white2011.versions import Point, points
from reports import SHORT, made_up, section

GPU_GAINS = [
    "G over F",
    "I over H",
    *(f"{letter} over E" for letter in "FGHI"),
    *(f"I over {them}" for them in ("best of F, G, H", "best of A to D", "E + best of A to D")),
]


@pytest.mark.ids("W14", "W15", "W16", "W17", "W18", "W19", "W20", "W23")
def test_white2011_runs_all_nine_implementations_where_a_device_is(haloscope):
    result = haloscope("study", "white2011", "--sizes", "20", "--device", "host", *SHORT)
    assert result.code == 0, result.err
    points = section(result.out, "All points")
    assert {row[2][0] for row in points} == set("ABCDEFGHI") and all(row[11] == "passed" for row in points)
    assert {(row[2][0], row[5]) for row in points if row[5]} == {(letter, w) for letter in "HI" for w in "13"}
    assert {row[6] for row in points if row[2][0] == "E"} == {"", "16x8", "32x8"}
    assert {row[4] for row in points if row[2][0] in "FGHI"} == {"1", "2"}
    gains = section(result.out, "Gains of overlap")
    assert [row[2] for row in gains if row[1] == "2" and row[2][0] not in "CD"] == GPU_GAINS
    [shapes] = section(result.out, "E by block shape")
    assert shapes[1] == "8" and float(shapes[2]) > 0 and float(shapes[3]) > 0
    assert {row[2] for row in section(result.out, "H and I by tasks x threads, layers of the box")} == {"H", "I"}


def test_no_published_number_stands_next_to_an_imitated_device(haloscope):
    def report(device: str, sizes: tuple[int, ...] = (420,)) -> str:
        options = Options(sizes=sizes, steps=10, cores=2, device=device, short=True)
        return white2011.report(made_up(white2011.plan(options).requests, lambda _: 1.0, launches=2), options)

    stated = {"G over F": "1.46", "I over E": "0.95", "I over best of A to D": "4 or more"}
    for device, size, shown in (("cuda", 420, True), ("host", 420, False), ("cuda", 400, False)):
        text = report(device, (size,))
        found = {row[2]: row[6] for row in section(text, "Gains of overlap") if row[1] == "2"}
        assert {name: found[name] for name in stated} == {name: value * shown for name, value in stated.items()}
        assert ("Published best: x 32 on Lens, 32 on Yona; y 11 on Lens, 8 on Yona." in text) is shown
        assert ("The device is imitated" in text) is (device == "host")
    other = {row[2]: row[6] for row in section(report("cuda"), "Gains of overlap") if row[1] == "1"}
    assert other["G over F"] == ""  # one core of two: not a whole node


@pytest.mark.ids("W20", "W23", "W25")
def test_white2011_reports_all_points_the_best_the_gains_and_the_code_size(haloscope):
    result = haloscope("study", "white2011", "--sizes", "16", *SHORT)
    assert result.code == 0, result.err
    found = records.read("r.jsonl").records
    assert all(r["verification"]["status"] == "passed" for r in found)
    points, best = section(result.out, "All points"), section(result.out, "Best per core count")
    assert {row[2][0] for row in points} == {"A", "B", "C", "D"}
    for row in points:
        assert float(row[7]) == pytest.approx(53 * 16**3 / float(row[8]) * 1e-3, rel=1e-2, abs=6e-3)
        assert row[9] and row[10].endswith("%")
    for row in best:
        rivals = [r for r in points if r[1:3] == row[1:3] and "oversubscribed" not in r[12]]
        assert float(row[8]) == min(float(r[8]) for r in rivals)
    gains = section(result.out, "Gains of overlap")
    assert [row[1:3] for row in gains] == [["2", "C over B"]]  # one core has no messages, D no two tasks
    assert all(row[5] in ("faster", "slower", "cannot tell apart") and row[6] for row in gains)
    lines = section(result.out, "Lines of code")
    assert [row[0][0] for row in lines] == list("ABCDEFGHI")
    assert lines[0][2] == "1.00" and all(int(row[1]) > 0 for row in lines)


def test_the_best_split_never_is_an_oversubscribed_one():
    def row(seconds, crowded):
        from test_records import measurement

        record = measurement(seconds=[seconds])
        record["environment"]["oversubscribed"] = crowded
        return group_rows([record])[0]

    split, crowded = Point(16, 2, "D", 1, 2), Point(16, 2, "D", 2, 2)
    assert list(best_of({split: row(2.0, False), crowded: row(1.0, True)})) == [split]


def test_splits_that_cannot_be_distinguished_from_the_best_are_named():
    def row(name, *launches):
        from test_records import measurement

        return group_rows([measurement(name, f"launch-{n}", list(steps)) for n, steps in enumerate(launches)])[0]

    measured = {
        Point(16, 2, "B", 1, 2): row("a", (1.0, 1.1), (1.2, 1.0), (1.0, 1.0)),
        Point(16, 2, "B", 2, 1): row("b", (1.1, 1.0), (1.0, 1.1), (1.1, 1.0)),
        Point(16, 2, "B", 4, 1): row("c", (2.0, 2.1), (2.1, 2.0), (2.0, 2.0)),
    }
    [(best, note)] = rivals(best_of(measured), measured).items()
    [other] = [point for point in measured if point.tasks < 4 and point != best]
    assert note == f"{other.setting}: cannot tell apart"
    alone = {point: r for point, r in measured.items() if point != other}
    assert not rivals(best_of(alone), alone)


def test_lines_of_code_leave_out_blanks_and_comments():
    text = "// top\n\nint a;  // tail\n/* block\n   more */\nint b; /* x */ int c;\n\n   \n"
    assert code_size.lines_of_code(text) == 2


def test_one_configuration_serves_all_implementations_that_are_the_same_work():
    plan = white2011.plan(Options(sizes=(16,), seconds=0.1, cores=1))
    assert len(plan.requests) == len({r.id for r in plan.requests})
    assert isinstance(plan, space.Space)


def test_the_axes_on_a_device_are_boxes_of_one_to_six_layers_and_the_papers_block_shapes():
    options = Options(sizes=(420,), seconds=5.0, cores=12, device="cuda")
    found = points(options)
    assert {p.walls for p in found if p.letter in "HI"} == set(range(1, 7))
    assert {p.walls for p in found if p.letter not in "HI"} == {0}
    shapes = {p.block for p in found if p.letter == "E"} - {""}
    assert shapes == {f"{x}x{y}" for x in (16, 32, 64) for y in range(4, 17)} and {"32x11", "32x8"} < shapes
    assert {(p.tasks, p.threads) for p in found if p.letter == "I" and p.cores == 12} == {
        (n, 12 // n) for n in (1, 2, 3, 4, 6, 12)
    }
    assert {p.tasks for p in found if p.letter == "F" and p.cores == 12} == {1, 2, 3, 4, 6, 12}
    choices = {p: part.requests[0].choice for p, part in found.items() if part.requests}
    assert all(c.walls == p.walls for p, c in choices.items() if p.walls)
    assert all(c.device_block == p.block for p, c in choices.items())


def test_the_full_study_has_the_published_size():
    white = white2011.plan(Options(sizes=(420,), seconds=5.0, cores=12))
    choices = [r.choice for r in white.requests]
    assert {c.shape for c in choices} == {"420x420x420"}
    assert {(c.ranks, c.threads) for c in choices if c.schedule == "bulk"} >= {(12, 1), (6, 2), (1, 12)}
    assert not [c for c in choices if c.schedule == "comm-thread" and c.threads < 2]
