"""The study of Vanecek 2020: what it measures, its tables and figures, and the replay of its printed data."""

from __future__ import annotations

import dataclasses
import math
import shutil
from pathlib import Path

import pytest

from haloscope import records, studies
from haloscope.studies import checks
from haloscope_studies.vanecek2020 import blocks, figures, matrix, printed, replay, report, requests, study, variants
from reports import section
from test_blocks import BASE, QUEUE, around, record

STUDY = Path(__file__).resolve().parents[1]
ROW = "taskqueue:queue,device,blocking"


@pytest.fixture
def cards(monkeypatch):
    """Devices are one card of each back end; ranks have two cores."""
    monkeypatch.setattr(requests, "usual_ranks", lambda device: 2 if device == "host" else 1)


# ---- what is measured ------------------------------------------------------------------------------------------------


@pytest.mark.ids("NE1", "NE2", "NE4", "NI6")
def test_all_variants_of_all_workloads_are_planned_for_40_tests_of_13_iterations(cards):
    full = dataclasses.replace(study.DEFAULTS["full"], device="cuda")
    planned = study.plan(full).requests
    assert len({r.id for r in planned}) == len(planned)
    assert full.launches * full.repetitions == 40
    timed = [r for r in planned if r.detail == "off"]
    assert all((r.warmup, r.iterations, r.repetitions, r.ranks, r.sides) == (3, 10, 8, 1, 2) for r in timed)
    for name in ("XS", "S", "M", "L", "XL"):
        flows = [
            variants.flow_of(r.variant) for r in timed if r.workload == name and r.variant in variants.all_variants()
        ]
        assert {flow: flows.count(flow) for flow in flows} == {"baseline": 4, "taskqueue": 8, "kernels": 2}
        detailed = [r.variant for r in planned if r.workload == name and r.detail == "on" and not r.sizes]
        assert detailed == [*matrix.of_thesis("cuda"), matrix.THROTTLED]
    raised = [(r.sizes[:2], "dummy" in r.variant) for r in planned if r.sizes]
    assert sorted(raised) == [
        ((8, 120000), False),
        ((8, 120000), True),
        ((40000, 120000), False),
        ((40000, 120000), True),
    ]


def test_memory_of_two_kinds_doubles_the_baselines_and_an_imitated_device_gets_small_workloads_in_short_runs(cards):
    both = [variants.flow_of(name) for name in matrix.of_thesis("hip")]
    assert both.count("baseline") == 8 and both.count("taskqueue") == 8
    quick = study.DEFAULTS["quick"]
    assert matrix.workloads(quick) == ["XS", "S"]
    assert matrix.workloads(dataclasses.replace(quick, device="cuda")) == list(requests.WORKLOADS)
    assert matrix.workloads(dataclasses.replace(quick, sizes=(5, 3))) == ["XL", "M"]
    host = study.plan(quick).requests
    assert {(r.device, r.ranks, r.sides) for r in host} == {("host", 2, 1)}
    assert {(r.ranks, r.sides) for r in study.plan(dataclasses.replace(quick, ranks=1)).requests} == {(1, 2)}


def test_a_size_that_is_no_workload_is_refused_with_those_that_are(haloscope):
    result = haloscope("study", "vanecek2020", "--quick", "--sizes", "6", "--device", "host")
    assert result.code == 2 and "use 1 XS, 2 S, 3 M, 4 L, 5 XL" in result.err


@pytest.mark.ids("NE1", "NE2", "NE3", "NE4", "NI3", "NI4", "NI6")
def test_the_study_measures_a_workload_and_prints_its_tables(haloscope):
    words = (
        "study",
        "vanecek2020",
        "--quick",
        "--sizes",
        2,
        "--ranks",
        1,
        "--launches",
        1,
        "--repetitions",
        1,
        "--device",
        "host",
    )
    result = haloscope(*words, "--output", "v.jsonl")
    assert result.code == 0, result.err
    file = records.read("v.jsonl")
    assert not file.bad_lines and all(r["verification"]["status"] == "passed" for r in file.records)
    assert {tuple(r["request"]["bytes"]) for r in file.records} == {
        tuple(printed.sizes("S")),
        (40000, *printed.sizes("S")[1:]),
    }
    assert "imitated by the CPU: these times do not hold for a GPU" in result.out
    timed = section(result.out, "Workload S")
    assert [line[0] for line in timed] == matrix.of_thesis("host") and all(
        line[1] and line[4] and line[9] == "passed" for line in timed
    )
    packing = section(result.out, "Packing a block, us")
    assert sorted(line[0] for line in packing[:15]) == sorted([*matrix.of_thesis("host"), matrix.THROTTLED])
    assert all(len(line) == 5 for line in packing[:15])
    assert [line[1] for line in section(result.out, "First send of an iteration")] == list(matrix.DRAWN)
    assert all(len(line) == 3 + 13 for line in section(result.out, "Iterations of a test, us"))
    sends = section(result.out, "Sends of each block, us")
    assert [line[0] for line in sends[:4]] == [
        "block 0 of 8 B",
        "block 0 of 8 B, dummy message",
        "block 0 of 40 kB",
        "block 0 of 40 kB, dummy message",
    ]
    assert len(sends) == 4 and "ublished" not in result.out  # times of an imitated device
    posting = section(result.out, "Packing with its posting")
    assert [line[1] for line in posting] == [QUEUE, "taskqueue:queue,pinned,nonblocking"]
    timed_posts = [r["blocks"]["posting_s"] for r in file.records if r["request"]["detail"] == "posting"]
    assert len(timed_posts) == 2 and any(seconds > 0 for posts in timed_posts for seconds in posts)
    off = [r for r in file.records if r["request"]["detail"] == "on"]
    assert off and all(not any(r["blocks"]["posting_s"]) for r in off)
    for name in ("v.svg", "v.png", "v-timeline.svg", "v-timeline.png"):
        assert Path(name).stat().st_size > 10000


# ---- tables and figures ----------------------------------------------------------------------------------------------


@pytest.fixture
def made() -> list[dict]:
    """Records of three launches of workload M on a GPU, of known times."""
    return made_on("cuda")


def made_on(device: str) -> list[dict]:
    about = {"workload": "M", "bytes": printed.sizes("M"), "threads": 128, "device": device}
    times = {
        BASE: 100,
        "baseline:waitall,blocking,coherent": 110,
        QUEUE: 80,
        ROW: 55,
        "taskqueue:channel,pinned,nonblocking,padded": 64,
        "kernels:nonblocking,coherent": 125,
    }
    return [
        record(name, around(us), around(us), launch=f"launch-{k}", **about)
        for name, us in times.items()
        for k in range(3)
    ]


@pytest.mark.ids("NE1")
def test_speed_ups_stand_beside_the_printed_ones_of_the_same_reference(made):
    lines = {line[0]: line for line in section(report.report(made), "Workload M")}
    assert lines[QUEUE][1:6] == ["4.4", "3059.1", "1.092", "80.0", "1.250"]
    assert lines[ROW][1:6] == ["4.4", "3107.9", "1.070", "55.0", "2.000"] and lines[ROW][7] == "misprint"
    headline = [line for line in section(report.report(made), "Headline") if line[4]]
    assert [(line[0], line[1], line[3], line[4]) for line in headline] == [
        ("v100", "M", "1.092", "1.250"),
        ("mi50", "M", "0.004", "1.818"),
    ]
    [ideas] = section(report.report(made), "Proposals of the thesis")
    assert ideas[1:3] == [f"{QUEUE},padded", "1.250"]


@pytest.mark.ids("NE1")
def test_no_printed_number_stands_next_to_times_of_an_imitated_device(made):
    own, printed_too = (report.report(found) for found in (made_on("host"), made))
    names = [[line[0] for line in section(text, "Workload M")] for text in (own, printed_too)]
    assert names[0] == names[1][: len(names[0])] and len(names[0]) == 5
    for text in ("ublished", "V100 speed-up", "| V100 "):
        assert text in printed_too and text not in own.split("### Machines", 1)[1].split("###", 1)[1], text


def test_figure_4_28_has_the_best_of_each_kind_by_workload_and_the_stated_values(made):
    [here] = report.set_ups(made)
    assert report.by_workload(here) == {
        "task queue, pinned": {"M": pytest.approx(1.25)},
        "task queue, memcpy": {"M": pytest.approx(100 / 55)},
        "kernel per block": {"M": pytest.approx(0.8)},
    }
    assert report.published_by_workload() == {
        "task queue, pinned": {"XS": 1.097, "M": 1.092, "L": 1.099, "XL": 1.187},
        "task queue, memcpy": {"XS": 0.79, "XL": 1.213},
    }


@pytest.mark.ids("NE3")
def test_iterations_of_all_tests_make_thirteen_boxes_the_first_of_a_launch_apart(made):
    rows = {row.variant: row for row in report.set_ups(made)[0].timed["M"]}
    assert report.iterations(rows[BASE]).shape == (6, 13)
    line = next(line for line in section(report.report(made), "Iterations of a test") if line[1] == BASE)
    assert line[2:] == ["900.0"] * 4 + ["99.00", "101.0"] * 5


def test_first_sends_are_counted_from_the_beginning_of_each_ranks_iteration():
    def events(rank, *sends):
        begin = {"kind": "launch", "block": -1, "chunk": 0, "rank": rank, "begin_s": 10.0 + rank, "end_s": 20.0}
        return [begin, *(begin | {"kind": "send", "block": block, "begin_s": at} for block, at in sends)]

    timeline = events(0, (0, 11.0), (5, 13.0), (4, 12.0)) + events(1, (0, 14.0), (3, 16.0))
    [row] = blocks.rows(
        [record(QUEUE, around(9), detail="on", timeline=timeline, clock={"ticks_per_s": 1e9, "precision_s": 1e-6})]
    )  # blocks 4 to 7 are the second side's
    assert report.first_sends_of(row) == (2.0, 4.0)


def test_set_ups_are_not_mixed(made):
    other = [r | {"id": "x" + r["id"], "request": r["request"] | {"device": "host"}} for r in made]
    text = report.report(made + other)
    assert text.count("### Machines") == 2 and text.count("do not hold for a GPU") == 1
    assert len(report.set_ups(made + other)) == 2 and figures.draw([], Path("none")) == []


# ---- the replay ------------------------------------------------------------------------------------------------------


@pytest.mark.ids("NE1")
def test_the_replay_reaches_every_bar_and_says_what_contradicts_itself(haloscope):
    result = haloscope("study", "vanecek2020", "--replay")
    assert result.code == 0, result.err
    replayed = study.replay()
    assert not replayed.surprises and len(replayed.checks) >= 35
    assert all(check.what.startswith("model: ") for check in replayed.missed) and len(replayed.missed) == 4
    rows = {line.split(",")[0] for line in (STUDY / "checklist.csv").read_text().splitlines()}
    assert {check.id for check in replayed.checks} <= rows
    assert f"{len(replayed.checks) - 4} of {len(replayed.checks)} results reach their bar, 4 miss it" in result.out
    [misprint] = [r for r in replayed.reports if ROW in r.what]
    assert (misprint.published, misprint.ours) == ("3107.9 us", "3220 us")


def test_every_published_table_is_read(monkeypatch, made):
    read, original = set(), studies.published
    for module in (printed, replay, report):
        if hasattr(module, "published"):
            monkeypatch.setattr(module, "published", lambda study, table: read.add(table) or original(study, table))
    for cached in (printed.results, printed.claims, printed.observed):
        cached.cache_clear()
    study.replay()
    report.report(made)
    assert read == {file.stem for file in (STUDY / "data").glob("*.csv")}


def test_sizes_follow_a_closed_form_and_data_take_as_long_as_by_hand():
    assert [replay.elements(k) for k in (0, 1, 8, 9, 17, 18, 26)] == [1, 15000, 120000, 5000, 125000, 10000, 130000]
    assert [replay.elements(k, 10) for k in (0, 26)] == [10, 1300000] and replay.elements(3, 1e-3) == 45
    assert [sum(printed.sizes(name)) for name in printed.workload_names()] == [
        728,
        720008,
        4320008,
        14040008,
        140400080,
    ]
    assert replay.fastest("1") == pytest.approx(3340.2e-6) and replay.fastest("1", blocking=True) == pytest.approx(
        3445.3e-6
    )
    assert replay.fastest("2") == pytest.approx(2765.2e-6)


def test_a_reference_that_fits_all_printed_speed_ups_lies_where_rounding_lets_it():
    row = dataclasses.replace(printed.results()[0], seconds=2.0, speedup=1.5)
    low, high = replay.implied([row, dataclasses.replace(row, seconds=3.0, speedup=1.0)])
    assert (low, high) == (pytest.approx(2.9990), pytest.approx(3.001))
    low, high = replay.implied([row, dataclasses.replace(row, seconds=4.0, speedup=1.0)])
    assert low > high


@pytest.mark.parametrize(
    ("table", "changed", "missed"),
    [
        ("results", {"2765.2": "2785.2"}, "table 4.3: speed-ups"),
        ("results", {"1.092,4.4": "1.095,4.4"}, "table 4.4: speed-ups"),
        ("results", {"9392": "9192"}, "table 4.5, nonblocking: one baseline"),
        ("blocks", {"45000": "45001"}, "table 4.1"),
        ("workload_blocks", {"XL,3,3600000": "XL,3,3600008"}, "blocks, least, largest and total"),
        ("headline_speedups", {"1.213": "1.3"}, "best taskqueue over best baseline"),
        ("deviations", {",128": ",168"}, "deviation of a baseline M"),
        ("micro_observations", {"212,212": "412,412"}, "sends after the first rendezvous"),
    ],
)
def test_a_wrong_number_in_the_printed_data_misses_a_bar(monkeypatch, tmp_path, table, changed, missed):
    shutil.copytree(STUDY / "data", tmp_path / "vanecek2020")
    file = tmp_path / "vanecek2020" / f"{table}.csv"
    [(old, new)] = changed.items()
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    monkeypatch.setattr(studies, "data_of", tmp_path.joinpath)
    cached = (printed.results, printed.claims, printed.observed)
    for one in cached:
        one.cache_clear()
    try:
        assert any(check.what.startswith(missed) for check in replay.replay().missed)
    finally:
        for one in cached:
            one.cache_clear()


def test_ranges_agree_when_both_ends_do_and_bounds_when_they_are_reached():
    claim = printed.Claim(2.0, 3.0, 0.1, "%", "")
    assert claim.agrees(1.95, 3.05) and not claim.agrees(1.95, 3.2) and not claim.agrees(2.2, 3.0)
    bound = printed.Claim(4.0, None, 0, "", "")
    assert bound.agrees(4.0, math.inf) and not bound.agrees(3.9, 9.0) and bound.text == "more than 4"
    assert checks.state(claim.agrees(2, 3)) == checks.MET and blocks.bytes_words(40000) == "40 kB"
