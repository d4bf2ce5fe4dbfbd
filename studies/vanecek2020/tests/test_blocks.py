"""`haloscope blocks`: variants by their words, tests of some iterations, tables, traces."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from haloscope import errors, records
from haloscope_studies.vanecek2020 import blocks, blocks_timeline, printed, requests, variants

PAGE = Path(__file__).resolve().parents[1] / "docs" / "blocks.md"
SHORT = (
    "--device",
    "host",
    "--ranks",
    1,
    "--warmup",
    1,
    "--iterations",
    2,
    "--repetitions",
    2,
    "--launches",
    1,
    "--output",
    "b.jsonl",
)
BASE = "baseline:waitall,nonblocking,coherent"
QUEUE = "taskqueue:channel,pinned,nonblocking"


def record(variant: str, *tests: list[float], launch: str = "launch-1", **changes) -> dict:
    """A complete record, as `haloscope-rank` writes it; tests: microseconds of each iteration, three of them
    warm-up.
    """
    name = variants.canonical(variant)
    request = {
        "ranks": 1,
        "workload": "XS",
        "bytes": [8, 120, 240, 360],
        "grid": [4, 1, 1],
        "threads": 16,
        "scheme": "pairs",
        "sides": 2,
        "variant": name,
        "device": "host",
        "check": "sampled",
        "detail": "off",
        "warmup": 3,
        "iterations": 10,
        "repetitions": len(tests),
    } | {k: changes.pop(k) for k in list(changes) if k in ("workload", "bytes", "detail", "device", "threads")}
    about = [name, request["workload"], request["bytes"], request["detail"], changes.get("timeline") is not None]
    found = {
        "schema": "haloscope.record",
        "schema_version": records.SCHEMA_VERSION,
        "kind": "blocks",
        "id": json.dumps(about),
        "launch": {"id": launch},
        "request": request,
        "environment": {
            "compiler": "GNU",
            "mpi_library": "MPICH 5",
            "cpu": "CPU",
            "device": {"name": "imitated", "total_bytes": 1},
        },
        "iterations_s": [[1e-6 * us for us in test] for test in tests],
        "events": {"launches": 1},
        "profile": {"hits": 0, "after_a_hit": 0.0, "longest_run": 0},
        "verification": {"status": "passed"},
    } | changes
    assert records.fault_of(found) == ""
    return found


def around(mean: float, warmup: float = 900.0) -> list[float]:
    """A test of three iterations that warm up and ten that alternate around a mean."""
    return [warmup] * 3 + [mean - 1, mean + 1] * 5


def test_a_record_whose_iterations_all_warm_up_is_refused():
    found = record(BASE, around(1.0))
    found["iterations_s"][0] = found["iterations_s"][0][:3]
    assert "3 iterations of a test, of which 3 warm up" in records.fault_of(found)


def test_a_record_that_does_not_fit_its_request_is_refused():
    cut = record(BASE, around(1.0), around(1.0))
    cut["iterations_s"][1].pop()
    assert "12 iterations of a test, of 13 requested" in records.fault_of(cut)
    idle = record(BASE, around(1.0)) | {"iterations_s": [[1e-3] * 3 + [0.0] * 10]}
    assert "a test without time" in records.fault_of(idle)
    blocks_of_a_side = record(BASE, around(1.0)) | {"blocks": {"packing_s": [1e-6] * 4}}
    assert "blocks/packing_s: 4 times of 8 blocks" in records.fault_of(blocks_of_a_side)


@pytest.mark.ids("NC9", "NX7")
def test_every_variant_runs_checks_all_it_gets_and_has_the_name_that_its_record_has(haloscope):
    ideas = (
        "taskqueue:chunks=2,padded",
        "taskqueue:queue,device,threads=3",
        "taskqueue:throttle=1,threads=2",
        "taskqueue:dummy,backoff=5",
        "baseline:dummy",
        "kernels:backoff=5,noncoherent",
    )
    result = haloscope("blocks", "XS", *SHORT, "--check", "full", "--variant", "all", "--variant", ";".join(ideas))
    assert result.code == 0, result.err
    file = records.read("b.jsonl")
    wanted = [*variants.all_variants(), *map(variants.canonical, ideas)]
    assert not file.bad_lines and len(set(wanted)) == 26
    assert sorted(r["request"]["variant"] for r in file.records) == sorted(wanted)
    assert all(r["id"].endswith("," + r["request"]["variant"]) for r in file.records)
    assert all(r["verification"] == {"status": "passed", "against": "every element"} for r in file.records)
    assert all(f"| {name} " in result.out for name in wanted)
    assert "imitated by the CPU" in result.out and f"{len(wanted)} not run" not in result.out


@pytest.mark.ids("NC4")
def test_buffers_hold_elements_of_any_type_which_are_not_compared_with_others(haloscope):
    for kind in ("float", "int", "double"):
        words = ("--type", kind, "--check", "full", "--variant", "baseline;taskqueue:device;kernels")
        assert haloscope("blocks", "XS", *SHORT, *words).code == 0
    file = records.read("b.jsonl")  # runs append to it
    assert not file.bad_lines and len(file.records) == 9
    assert {r["verification"]["status"] for r in file.records} == {"passed"}
    found = blocks.groups(blocks.rows(file.records))
    assert [heading.rpartition(", ")[2] for heading in found] == ["elements float", "elements int", "check full"]
    assert all(len(rows) == 3 and rows[0].request["bytes"] == printed.sizes("XS") for rows in found.values())


@pytest.mark.ids("NE1")
def test_the_matrix_of_the_thesis_is_8_baselines_8_task_queues_and_kernels_per_block():
    flows = [variants.flow_of(name) for name in variants.all_variants()]
    assert {flow: flows.count(flow) for flow in flows} == {"baseline": 8, "taskqueue": 8, "kernels": 4}
    assert all(variants.canonical(name) == name for name in variants.all_variants())
    usual = requests.variant_list(["baseline:*,coherent;taskqueue:*"])
    assert len(usual) == 12 and BASE in usual and QUEUE in usual and not any("noncoherent" in name for name in usual)
    assert requests.variant_list(["taskqueue", QUEUE]) == [QUEUE]
    assert (
        variants.canonical("taskqueue:chunks=4,device,chunks=4".replace(",chunks=4", "", 1))
        == "taskqueue:channel,device,nonblocking,chunks=4"
    )
    assert variants.canonical("taskqueue:chunks=1,throttle=0") == QUEUE


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--variant", "queue"), "unknown flow of blocks 'queue'; did you mean taskqueue?"),
        (("--variant", "baseline:queue"), "unknown word of the baseline of blocks 'queue'"),
        (("--variant", "taskqueue:queu"), "did you mean queue"),
        (("--variant", "taskqueue:queue,channel"), "has 'queue' and 'channel', of the same kind; give one"),
        (("--variant", "taskqueue:chunks=x"), "write chunks=N with a whole number"),
        (("--variant", "kernels:*,padded"), "unknown variant of blocks"),
        (("--variant", ";"), "--variant names none"),
        (("--bytes", "12"), "use multiples of 8"),
        (("XS,S", "--bytes", "16"), "name one workload"),
        (("XXL",), "unknown workload 'XXL'; did you mean XL?"),
        (("--device", "none"), "blocks are of one device"),
        (("--timeline", "t.json", "--detail", "off"), "use --detail on or posting"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy_before_ranks_start(haloscope, words, message):
    words = ("XS", *words) if words[0].startswith("--") else words
    result = haloscope("blocks", *words, *(() if "--device" in words else ("--device", "host")))
    assert result.code == 2 and message in result.err, result.err
    assert not Path("results").exists()


def test_what_only_the_rank_program_can_judge_is_a_skipped_record_with_its_remedy(haloscope):
    result = haloscope("blocks", "XS", *SHORT, "--variant", "baseline;taskqueue:chunks=999")
    [skipped] = [r for r in records.read("b.jsonl").records if r["kind"] == "skipped"]
    assert result.code == 0 and "chunks=N takes a whole number from 1 to" in skipped["reason"]
    assert f"1 not run ({skipped['id']})" in result.out


@pytest.mark.ids("NI6")
def test_a_test_is_the_mean_of_its_ten_iterations_after_those_that_warm_up():
    made = record(BASE, *[around(100 + k) for k in range(40)])
    assert blocks.means(made) == pytest.approx([1e-6 * (100 + k) for k in range(40)])
    requested = requests.Blocks(BASE).request()
    assert (requested["warmup"], requested["iterations"]) == (3, 10)


@pytest.mark.ids("NE1")
def test_speed_ups_are_over_the_fastest_baseline_and_the_fastest_with_the_same_sends():
    times = {
        BASE: 100,
        "baseline:waitall,blocking,coherent": 120,
        "baseline:testany,blocking,coherent": 110,
        "baseline:waitall,nonblocking,noncoherent": 50,
        "taskqueue:channel,pinned,blocking": 100,
        QUEUE: 80,
    }
    found = [
        record(name, around(us), around(us + 2), launch=f"launch-{k}") for name, us in times.items() for k in range(3)
    ]
    [(heading, members)] = blocks.groups(blocks.rows(found)).items()
    assert (
        heading == "Workload XS: 4 blocks of 16 threads, 728 B a side; 1 rank of 2 sides on host, pairs, check sampled"
    )
    lines = [[c.strip() for c in line.split("|")[1:-1]] for line in blocks.table(members).splitlines()[2:]]
    cells = {line[0]: line for line in lines}
    assert list(cells) == sorted(times, key=variants.all_variants().index)
    assert (
        cells[BASE][1] == "101.0"
        and cells[BASE][4] == "1 (base)"
        and float(cells[BASE][3]) == pytest.approx(1.095, abs=1e-3)
    )
    assert cells[QUEUE][4] == f"{101 / 81:.3f}" == cells[QUEUE][6]
    assert cells["taskqueue:channel,pinned,blocking"][4] == "1.000"
    assert cells["taskqueue:channel,pinned,blocking"][6] == f"{111 / 101:.3f}"
    assert cells["baseline:waitall,nonblocking,noncoherent"][4] == f"{101 / 51:.3f}"  # it is no reference itself


def test_a_single_test_has_no_interval_and_no_deviation():
    lines = blocks.table(blocks.rows([record(BASE, around(9)), record(QUEUE, around(6))])).splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [line[1:7] for line in cells] == [
        ["9.000", "", "", "1 (base)", "", "1 (base)"],
        ["6.000", "", "", "1.500", "", "1.500"],
    ]


def test_shares_of_hits_and_their_longest_run_come_from_all_launches():
    found = [
        record(QUEUE, around(9), launch=f"launch-{k}", profile={"hits": 8, "after_a_hit": share, "longest_run": run})
        for k, (share, run) in enumerate([(0.25, 3), (0.5, 7), (0.75, 4)])
    ]
    [row] = blocks.rows(found)
    assert row.profile == (0.5, 7) and blocks.profile_cells(row) == ["50 %", "7"]
    assert blocks.rows([record(BASE, around(9))])[0].profile is None


EVENTS = [
    ("launch", -1, 0, 2),
    ("pack", 0, 2, 5),
    ("send", 0, 5, 6),
    ("receive", 0, 7, 7),
    ("notify", 0, 7, 7),
    ("unpack", 0, 8, 9),
]


@pytest.mark.ids("NI3")
def test_a_trace_has_a_process_for_each_variant_and_lines_for_each_block_from_the_beginning_on():
    events = [
        {"kind": kind, "block": block, "chunk": 0, "begin_s": 50 + 1e-6 * a, "end_s": 50 + 1e-6 * b, "rank": rank}
        for rank in (0, 1)
        for kind, block, a, b in EVENTS
    ]
    table = blocks.rows(
        [
            record(name, around(9), detail="on", timeline=events, clock={"ticks_per_s": 1e9, "precision_s": 1.5e-6})
            for name in (BASE, QUEUE)
        ]
    )
    made = blocks_timeline.trace(table)["traceEvents"]
    assert {e["args"]["labels"] for e in made if e["name"] == "process_labels"} == {"device +- 1.5 us"}
    assert [e["args"]["name"] for e in made if e["name"] == "process_name"] == [
        f"{name}, workload XS, rank {rank}" for name in (BASE, QUEUE) for rank in (0, 1)
    ]
    lanes = {e["tid"]: e["args"]["name"] for e in made if e["name"] == "thread_name"}
    assert lanes == {0: "CPU", 1: "compute stream", 2: "side 0, block 0, CPU", 3: "side 0, block 0, device"}
    drawn = [(e["name"], lanes[e["tid"]], e["ts"], e["dur"]) for e in made if e["ph"] == "X" and e["pid"] == 3]
    timed = [event for event in drawn if event[1] != "compute stream"]
    assert drawn[-1] == ("kernel", "compute stream", pytest.approx(2, abs=1e-6), pytest.approx(7, abs=1e-6))
    of_base = [e for e in made if e["ph"] == "X" and (e["pid"], e["tid"]) == (1, 1)]
    assert [e["name"] for e in of_base] == ["packing kernel", "unpacking kernel"]
    assert timed == [
        (
            kind,
            "CPU" if block < 0 else f"side 0, block 0, {'CPU' if kind in ('send', 'receive', 'notify') else 'device'}",
            pytest.approx(a, abs=1e-6),
            pytest.approx(b - a, abs=1e-6),
        )
        for kind, block, a, b in EVENTS
    ]


@pytest.mark.ids("NI3")
def test_timelines_of_a_run_become_a_trace_and_a_figure_whose_segments_fill_the_iteration(haloscope):
    result = haloscope("blocks", "XS", *SHORT, "--variant", "baseline;taskqueue", "--timeline", "t/trace.json")
    assert result.code == 0, result.err
    made = json.loads(Path("t/trace.json").read_text())["traceEvents"]
    names = {e["name"] for e in made if e["ph"] == "X"}
    assert {"launch", "post", "barrier", "pack", "send", "receive", "notify", "unpack"} <= names
    assert Path("t/trace.svg").stat().st_size > 10000 and Path("t/trace.png").exists()
    for row in blocks.rows(records.read("b.jsonl").records):
        segments = [e for e in blocks_timeline.timeline(row) if e["block"] < 0]
        assert [e["end_s"] for e in segments[:-1]] == pytest.approx([e["begin_s"] for e in segments[1:]], abs=1e-9)
        [one] = row.records
        counted = [seconds for tests in one["iterations_s"] for seconds in tests[1:]]
        assert set(one["segments_s"]) == {e["kind"] for e in segments}
        assert 0 < sum(one["segments_s"].values()) <= sum(counted) / len(counted) + 1e-6


@pytest.mark.ids("NM1")
def test_a_trace_with_copies_has_a_stream_for_each_block_and_one_for_the_kernel(haloscope):
    words = ("--variant", "taskqueue:device;taskqueue", "--timeline", "t.json")
    assert haloscope("blocks", "XS", *SHORT, *words).code == 0
    made = json.loads(Path("t.json").read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in made if e["name"] == "thread_name"}
    for process, copies in ((0, 0), (1, 8)):
        lanes = {(p, lane): name for (p, lane), name in names.items() if p == process and "stream" in name}
        assert sorted(lanes.values()) == sorted(
            ["compute stream", *(f"side {k // 4}, block {k % 4}, copy stream" for k in range(copies))]
        )
        kinds = {lane: [e["name"] for e in made if e["ph"] == "X" and (e["pid"], e["tid"]) == lane] for lane in lanes}
        assert sorted(kinds.values()) == sorted([["kernel"], *[["copy-in", "copy-out"]] * copies])


@pytest.mark.ids("NE2")
def test_times_of_a_block_are_means_over_launches_and_sides():
    made = [
        {name: [1.0 * k, 2, 3, 4, 3.0 * k, 4, 5, 6] for name in ("packing_s", "posting_s", "sending_s", "unpacking_s")}
        for k in (1, 2)
    ]
    found = [record(QUEUE, around(9), launch=f"launch-{k}", detail="on", blocks=one) for k, one in enumerate(made)]
    assert blocks.rows(found)[0].per_block("packing_s") == [3, 3, 4, 5]


def test_records_without_timelines_say_how_to_get_some(haloscope):
    Path("r.jsonl").write_text(json.dumps(record(BASE, around(9))) + "\n")
    result = haloscope("blocks", "--from", "r.jsonl", "--timeline", "t.json")
    assert result.code == 2 and "measure with --timeline" in result.err and not Path("t.json").exists()


@pytest.mark.parametrize("key", ["iterations_s", "profile", "events", "request", "environment", "verification"])
def test_a_record_without_one_of_its_parts_does_not_satisfy_the_schema(key):
    broken = record(BASE, around(9))
    del broken[key]
    assert key in records.fault_of(broken)


def test_sizes_may_repeat_and_ranks_without_a_card_each_have_both_sides(monkeypatch):
    from haloscope.measure import devices, launch

    assert requests.sizes_of("8,8,16..32+8") == (8, 8, 16, 24, 32)
    with pytest.raises(errors.UsageError, match="multiples of 8"):
        requests.sizes_of("8,9")
    cards = [
        {"name": "cuda", "absent": "", "devices": [{}]},
        {"name": "hip", "absent": "", "devices": [{}, {}]},
        {"name": "host", "absent": "", "devices": [{}]},
    ]
    monkeypatch.setattr(devices, "backends", lambda: cards)
    for cores, expected in ((1, 1), (8, 2)):
        monkeypatch.setattr(launch, "cores", lambda cores=cores: cores)
        assert [requests.usual_ranks(name) for name in ("cuda", "hip", "host")] == [1, 2, expected]


@pytest.mark.parametrize("command", re.findall(r"^\$ haloscope (.*)$", PAGE.read_text(), re.MULTILINE))
def test_commands_of_the_page_run(haloscope, command):
    shorter = ("--launches", "1", "--repetitions", "1", "--iterations", "1", "--output", "r.jsonl")
    result = haloscope(*shlex.split(command), *shorter)
    assert result.code == 0, result.err
    assert "### Workload S: 4 blocks" in result.out and "| passed " in result.out
