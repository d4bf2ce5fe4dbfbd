"""The study of 2023 on grids small enough for a test, and its published times."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import statistics
from pathlib import Path

import pytest

from haloscope import records
from haloscope.measure.request import Request
from haloscope.records.rows import Row, group_rows
from haloscope.report import tables
from haloscope_studies.valen2023 import appendix, comparisons, timers
from haloscope_studies.valen2023 import study as valen2023
from paths import ROOT
from reports import SHORT, section
from test_records import measurement


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


@pytest.mark.ids("V17")
def test_valen2023_prints_tables_like_its_appendix_with_spread_and_count(haloscope):
    result = haloscope("study", "valen2023", "--sizes", "32,40", "--depths", "1,2", *SHORT)
    assert result.code == 0, result.err
    found = records.read("r.jsonl").records
    assert len(found) == 2 * 4 * 2 * 2 and all(r["verification"]["status"] == "passed" for r in found)
    assert all(r["request"]["barrier"] and r["request"]["real"] == "f32" for r in found)
    for side, program in itertools.product((32, 40), valen2023.PROGRAMS):
        assert_spread_of_records(result.out, side, program, found)
    best = section(result.out, "Best depth per program")
    assert [row[:2] for row in best] == [[side, program] for side in ("32", "40") for program in valen2023.PROGRAMS]
    assert all(cell == "" for row in best for cell in row[6:])  # neither side is in the thesis
    theirs = section(result.out, "Best depths of the thesis")
    assert all(re.fullmatch(r"\d+\.\.\d+: [\d.]+\.\.[\d.]+", cell) for row in theirs for cell in row[1:])


def assert_spread_of_records(text: str, side: int, program: str, found: list[dict]) -> None:
    """Assert that a table has the mean, the standard deviation and the count of the repetitions of its records."""
    title = f"Side {side}, {program}"
    factor = {"s": 1.0, "ms": 1e3, "us": 1e6}[re.search(r"execution \((\w+)\)", text.split(f"### {title}\n")[1])[1]]
    table = section(text, title)
    assert [row[0] for row in table] == ["1", "2"]
    for row in table:
        [request] = valen2023.request(side, program, int(row[0]), OF_RECORDS).requests
        own = [r for r in found if r["id"] == request.id]
        runs = [factor * seconds for record in own for seconds in record["time_s"]["repetitions"]]
        assert row[1:4] == [tables.number(statistics.mean(runs)), tables.number(statistics.stdev(runs)), "4"]


OF_RECORDS = dataclasses.replace(valen2023.DEFAULTS["quick"], steps=4, repetitions=2)


@pytest.mark.ids("V17")
def test_an_outlier_is_flagged_and_counts_in_mean_and_spread():
    options = dataclasses.replace(valen2023.DEFAULTS["full"], sizes=(100,), depths=(2,), steps=8)
    [request] = valen2023.request(100, "ordered overlapped", 2, options).requests
    runs = [0.193] * 6 + [5.482]  # the thesis removed such runs, and printed a mean of 32
    found = made_up(request)
    found["time_s"] = {"repetitions": runs}
    [row] = section(valen2023.report([found], options), "Side 100, ordered overlapped")
    assert row[1:4] == [tables.number(1e3 * statistics.mean(runs)), tables.number(1e3 * statistics.stdev(runs)), "7"]
    assert row[-1] == "1 outlier"


def test_the_full_study_has_the_published_sizes():
    options = valen2023.DEFAULTS["full"]
    assert options.repetitions * options.launches == 35 and options.steps == 2048 and options.ranks == 4
    assert len(valen2023.plan(options).requests) == 7 * 7 * 4


def test_published_timers_are_those_of_the_thesis():
    of_cell = appendix.published_timers(5000, "ordered phased", 1)
    assert {machine: times["execution"] for machine, times in of_cell.items()} == {"A100": 0.5741, "V100": 0.6106}
    assert appendix.published_timers(35000, "direct overlapped", 64)["V100"]["execution"] == 14.2427
    assert appendix.published_timers(123, "ordered phased", 1) == {}


def test_published_best_depths_are_those_of_the_thesis():
    best = valen2023.published_best()
    of_sides = best["V100", "ordered overlapped"]
    assert list(of_sides) == list(range(5000, 35001, 5000))
    assert [depth for depth, _ in of_sides.values()] == [32, 8, 8, 16, 16, 16, 4]
    assert round(of_sides[35000][1], 3) == round(9.0193 / 8.3366, 3)
    assert best["A100", "direct phased"][5000][0] == 32


@pytest.mark.parametrize(
    ("change", "shown"),
    [({}, True), ({"ranks": 2}, False), ({"steps": 128}, False), ({"device": "host"}, False)],
)
def test_the_eight_timers_stand_next_to_runs_of_the_same_size_ranks_and_steps_only(change, shown):
    options = dataclasses.replace(valen2023.DEFAULTS["full"], sizes=(5000,), depths=(1, 2), **change)
    found = [made_up(r) for part in valen2023.points(options).values() for r in part.requests]
    for record in found:
        record["time_s"]["repetitions"] = [2.0, 2.0, 2.3]  # their mean counts, as in the thesis
    text = valen2023.report(found, options)
    for program in valen2023.PROGRAMS:
        assert_timers(section(text, f"Side 5000, {program}"), program, shown)
    assert (all(row[6:] != ["", ""] for row in section(text, "Best depth per program"))) == shown


def assert_timers(rows: list[list[str]], program: str, shown: bool) -> None:
    """Assert that the rows of depths 1 and 2 have the timers of appendix C, and ours, if they are shown."""
    theirs = [row for row in rows if row[1] in comparisons.MACHINES]
    assert [row[:2] for row in theirs] == [[d, m] for d in "12" for m in comparisons.MACHINES] * shown
    for depth, machine, *printed in theirs:
        cell = comparisons.published_table(machine)[5000, program, int(depth)]
        assert [float(one) for one in printed] == [cell.times[name] for name in timers.TERSE]
    phase = "20.4800"  # 0.01 s in each of 2048 steps
    here = ["2.1000", phase, phase, "0.0000", "0.0000", phase, phase, phase]
    assert [row for row in rows if row[1] == "here"] == [[depth, "here", *here] for depth in "12"] * shown


def test_no_best_depth_coverage_or_anomaly_stands_without_a_verdict():
    options = dataclasses.replace(valen2023.DEFAULTS["full"], sizes=(100,), depths=(1, 2, 4), steps=8)
    seconds = {1: 2.0, 2: 1.0, 4: 1.001}  # 2 and 4 differ by less than the repetitions do

    def report(noise: float, message: dict[str, float]) -> str:
        found = []
        for (_, program, depth), part in valen2023.points(options).items():
            for launch in range(5):
                odd = 1 + noise * (-1) ** (launch + len(program) + depth // 2)
                [request] = part.requests
                found.append(
                    made_up(request, odd * seconds[depth], f"launch-{launch}", odd * message[program.split()[0]])
                )
        return valen2023.report(found, options)

    text = report(0.05, {"ordered": 0.01, "direct": 0.0151})
    best = {row[1]: row[2:4] for row in section(text, "Best depth per program")}
    assert best["ordered phased"][0].endswith("2, 4 ?")
    assert {"fastest ?", "?"} <= {verdict for _, verdict in best.values()}
    assert all(cell.endswith(" ?") for row in section(text, "Coverage, ordered, %") for cell in row[2:5])
    assert all("x) ?" in row[2] for row in section(text, "Anomalies"))
    clear = report(0.0, {"ordered": 0.01, "direct": 0.05})
    assert {row[2] for row in section(clear, "Best depth per program")} == {"2"}
    assert all("(5.0x)" in row[2] and "?" not in row[2] for row in section(clear, "Anomalies"))


def test_the_fastest_program_has_a_verdict_against_each_other_one():
    rows = {
        name: row_of(name, seconds)
        for name, seconds in {"a": (1.0, 1.1, 1.0), "b": (1.09, 1.01, 1.02), "c": (2.0, 2.1, 2.0)}.items()
    }
    assert valen2023.fastest_programs(rows) == {"a": "fastest ?", "b": "?"}
    assert valen2023.fastest_programs({"b": rows["b"], "c": rows["c"]}) == {"b": "fastest"}


def row_of(name: str, launches: tuple[float, ...]) -> Row:
    [row] = group_rows([measurement(name, f"launch-{n}", [one, one]) for n, one in enumerate(launches)])
    return row


def made_up(request: Request, seconds: float = 1.0, launch: str = "launch-1", message: float = 0.01) -> dict:
    """Return the record of runs of about some seconds."""
    phase = dict.fromkeys(("rank0", "min", "mean", "median", "max"), 0.01)
    waited = dict.fromkeys(phase, message)
    return {
        "kind": "measurement",
        "id": request.id,
        "launch": {"id": launch},
        "request": request.request() | {"process_grid": [request.ranks // 2, 2]},
        "time_s": {"repetitions": [seconds, 1.0001 * seconds]},
        "environment": {"oversubscribed": False},
        "verification": {"status": "passed"},
        "phases_s": dict.fromkeys(("compute", "pack", "unpack", "desync", "rest"), phase) | {"wait": waited},
    }


def test_an_interrupted_study_can_be_resumed(haloscope):
    words = ("study", "valen2023", "--sizes", "32", "--depths", "1", *SHORT)
    assert haloscope(*words).code == 0
    lines = Path("r.jsonl").read_text().splitlines(keepends=True)
    Path("r.jsonl").write_text("".join(lines[:5]))
    assert haloscope(*words, "--resume").code == 0
    after = [(r["id"], r["launch"]["id"]) for r in records.read("r.jsonl").records]
    assert len(after) == len(set(after)) == len(lines[1:]) == 8


@pytest.mark.ids("V24")
def test_a_gpu_has_times_of_kernels_with_and_without_shared_memory_in_two_and_three_dimensions():
    kept = ROOT / "results" / "gpu" / "nvidia-h200" / "kernels.jsonl"
    device, *found = map(json.loads, kept.read_text().splitlines())
    assert device["device"] == "NVIDIA H200" and not device["imitated"]
    timed = {(r["app"], r["variant"]) for r in found if r.get("levels") == 1 and min(r["seconds"], default=0) > 0}
    assert timed >= {(app, kernel) for app in ("laplace2d", "laplace3d") for kernel in ("shared", "stream")}
