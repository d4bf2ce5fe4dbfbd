"""The published experiments, on grids small enough for a test, and the published figures kept with them."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from haloscope import records, studies
from haloscope.measure import space
from haloscope.records.rows import group_rows
from haloscope.studies import Options
from haloscope.studies.valen2023 import study as valen2023
from haloscope.studies.white2011 import study as white2011

SHORT = ("--quick", "--steps", "4", "--repetitions", "2", "--launches", "2", "--output", "r.jsonl")


def section(text: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    body = text.split(f"### {title}", 1)[1].split("\n###", 1)[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in body.splitlines() if line.startswith("|")][2:]


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


@pytest.mark.ids("V12")
def test_valen2023_runs_its_four_programs_on_a_device(haloscope):
    words = ("--sizes", "48", "--depths", "1,2", "--ranks", 2, "--device", "host", *SHORT)
    result = haloscope("study", "valen2023", *words, "--output", "v.jsonl")
    assert result.code == 0, result.err
    found = records.read("v.jsonl").records
    assert {(r["request"]["strategy"], r["request"]["schedule"]) for r in found} == set(
        itertools.product(("ordered/staged:pageable", "direct:corners/staged:pageable"), ("bulk", "streams"))
    )
    assert all(r["verification"]["status"] == "passed" and r["environment"]["device"] for r in found)
    again = haloscope(
        "study", "valen2023", "--sizes", "48", "--depths", "1,2", "--ranks", 2, "--from", "v.jsonl", *SHORT
    )
    assert "### Side 48, direct overlapped" in again.out


def test_a_study_without_versions_for_devices_says_so(haloscope):
    result = haloscope("study", "schroeter2021", "--quick", "--device", "host")
    assert result.code == 2 and "--device works with white2011, valen2023" in result.err


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
    gains = section(result.out, "What overlap gains")
    assert {row[2] for row in gains} >= {"C over B"}
    assert all(row[5] in ("faster", "slower", "cannot tell apart") and row[6] for row in gains)
    lines = section(result.out, "Lines of code per schedule")
    assert [row[0][0] for row in lines] == ["A", "B", "C", "D"]
    assert lines[0][3] == "1.00" and all(int(row[2]) > 0 for row in lines)


@pytest.mark.ids("V17")
def test_valen2023_prints_tables_like_its_appendix_with_spread_and_count(haloscope):
    result = haloscope("study", "valen2023", "--sizes", "32", "--depths", "1,2", *SHORT)
    assert result.code == 0, result.err
    found = records.read("r.jsonl").records
    assert len(found) == 4 * 2 * 2 and all(r["verification"]["status"] == "passed" for r in found)
    assert all(r["request"]["barrier"] and r["request"]["real"] == "f32" for r in found)
    for program in valen2023.PROGRAMS:
        table = section(result.out, f"Side 32, {program}")
        assert [row[0] for row in table] == ["1", "2"]
        assert all(row[3] == "4" and float(row[2]) >= 0 for row in table)  # count = launches x repetitions
    best = section(result.out, "Best depth per program")
    assert [row[1] for row in best] == list(valen2023.PROGRAMS)
    assert all(re.fullmatch(r"\d+\.\.\d+: [\d.]+\.\.[\d.]+", cell) for row in best for cell in row[5:])


def test_full_studies_have_the_published_sizes():
    white = white2011.plan(Options(sizes=(420,), seconds=5.0, cores=12))
    choices = [r.choice for r in white.requests]
    assert {c.shape for c in choices} == {"420x420x420"}
    assert {(c.ranks, c.threads) for c in choices if c.schedule == "bulk"} >= {(12, 1), (6, 2), (1, 12)}
    assert not [c for c in choices if c.schedule == "comm-thread" and c.threads < 2]
    options = valen2023.DEFAULTS["full"]
    assert options.repetitions * options.launches == 35 and options.steps == 2048 and options.ranks == 4
    assert len(valen2023.plan(options).requests) == 7 * 7 * 4


def test_every_study_is_found_by_name_and_says_what_it_is():
    for name in studies.NAMES:
        study = studies.load(name)
        assert study.SUMMARY
        assert set(study.DEFAULTS) == {"quick", "full"}


def test_published_times_are_those_of_the_thesis():
    assert valen2023.published_times(5000, "ordered phased", 1) == {"A100": 0.5741, "V100": 0.6106}
    assert valen2023.published_times(35000, "direct overlapped", 64)["V100"] == 14.2427
    assert valen2023.published_times(123, "ordered phased", 1) == {}


def test_published_best_depths_are_those_of_the_thesis():
    best = valen2023.published_best()
    depths, gains = best["V100", "ordered overlapped"]
    assert depths == [32, 8, 8, 16, 16, 16, 4]
    assert [round(g, 3) for g in gains][-1] == round(9.0193 / 8.3366, 3)
    assert best["A100", "direct phased"][0][0] == 32


def test_the_best_split_never_is_an_oversubscribed_one():
    def row(seconds, crowded):
        from test_records import measurement

        record = measurement(seconds=[seconds])
        record["environment"]["oversubscribed"] = crowded
        return group_rows([record])[0]

    measured = {(16, 2, "D", 1, 2): row(2.0, False), (16, 2, "D", 2, 2): row(1.0, True)}
    assert list(white2011.best_of(measured)) == [(16, 2, "D", 1, 2)]


def test_lines_of_code_leave_out_blanks_and_comments():
    text = "// top\n\nint a;  // tail\n/* block\n   more */\nint b; /* x */ int c;\n\n   \n"
    assert white2011.lines_of_code(text) == 2


def test_an_interrupted_study_can_be_resumed(haloscope):
    words = ("study", "valen2023", "--sizes", "32", "--depths", "1", *SHORT)
    assert haloscope(*words).code == 0
    lines = Path("r.jsonl").read_text().splitlines(keepends=True)
    Path("r.jsonl").write_text("".join(lines[:5]))
    assert haloscope(*words, "--resume").code == 0
    after = [(r["id"], r["launch"]["id"]) for r in records.read("r.jsonl").records]
    assert len(after) == len(set(after)) == len(lines) == 8


def test_one_configuration_serves_all_implementations_that_are_the_same_work():
    plan = white2011.plan(Options(sizes=(16,), seconds=0.1, cores=1))
    assert len(plan.requests) == len({r.id for r in plan.requests})
    assert isinstance(plan, space.Space)
