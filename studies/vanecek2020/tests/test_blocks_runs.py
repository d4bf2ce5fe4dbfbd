"""Exchanges of blocks by the rank program: several threads of the CPU, long runs, runs that are stuck,
ThreadSanitizer.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from haloscope.bridge import build
from haloscope.measure import launch
from test_cpp import run_group

BASELINES = [
    f"baseline:{wait},{send},{memory}"
    for wait in ("waitall", "testany")
    for send in ("nonblocking", "blocking")
    for memory in ("coherent", "noncoherent")
]
TASKQUEUES = [
    f"taskqueue:{tasks},{buffer},{send}"
    for tasks in ("channel", "queue")
    for buffer in ("pinned", "device")
    for send in ("nonblocking", "blocking")
]
PROPOSED = [
    *(
        "taskqueue:chunks=3",
        "taskqueue:queue,device,chunks=3",
        "taskqueue:padded",
        "taskqueue:throttle=2",
        "taskqueue:dummy",
    ),
    *(
        "taskqueue:backoff=20",
        "taskqueue:threads=2",
        "taskqueue:queue,device,threads=3",
        "taskqueue:device,chunks=2,threads=3",
    ),
    *("kernels", "kernels:blocking,noncoherent"),
]
THREADED = [v for v in PROPOSED if "threads" in v]
SIZES = [8, 800, 16, 160]


def request(variant: str, /, **more) -> dict:
    """Return a request of blocks that checks every element on imitated devices."""
    usual = {
        "bytes": SIZES,
        "threads": 4,
        "scheme": "mixed",
        "check": "full",
        "device": "host",
        "warmup": 0,
        "repetitions": 1,
    }
    return {"kind": "blocks", "id": variant, "request": {**usual, "variant": variant} | more}


def run(
    ranks: int, lines: list[dict], folder: Path, program: Path | None = None, **environment: str
) -> tuple[int, str, list]:
    """Run requests on some ranks. Returns the exit code, the messages and the records."""
    (folder / "lines").write_text("".join(json.dumps(line) + "\n" for line in lines))
    program = program or build.rank_program()
    words = ["--requests", folder / "lines", "--output", folder / "r.jsonl"]
    settings = [f"{name}={value}" for name, value in environment.items()]
    start = launch.launcher_words(launch.mpiexec(), ranks, 1)
    code, output = run_group(["env", *settings, *start, program, *words], folder)
    found = folder / "r.jsonl"
    return code, output, [json.loads(line) for line in found.read_text().splitlines()] if found.exists() else []


def faulty_program() -> Path:
    return Path(os.environ["HALOSCOPE_BUILD"]) / "tests" / "rank_with_faults"


@pytest.mark.ids("NX1", "NC9")
@pytest.mark.parametrize("ranks", [1, 2])
def test_several_threads_of_the_cpu_deliver_every_element(tmp_path, ranks):
    lines = [request(variant, iterations=1000 if ranks == 1 else 50) for variant in THREADED]
    code, output, found = run(ranks, lines, tmp_path, faulty_program(), HALOSCOPE_TEST_DEVICE="block_delay_us=30")
    assert code == 0, output
    assert [r["verification"]["status"] for r in found] == ["passed"] * len(THREADED)
    for record in found:
        events = record["events"]
        assert events["tasks"] == events["sends"] == events["arrivals"] > 0
        assert events["illegal_moves"] == events["misordered_tasks"] == 0


@pytest.mark.long
@pytest.mark.ids("NT2", "NM2")
@pytest.mark.parametrize("variant", [*BASELINES, *TASKQUEUES, *PROPOSED])
def test_a_hundred_thousand_exchanges_deliver_every_element(tmp_path, variant):
    line = request(variant, iterations=100_000)
    code, output, [record] = run(1, [line], tmp_path, faulty_program(), HALOSCOPE_TEST_DEVICE="block_delay_us=5")
    assert code == 0, output
    assert record["verification"]["status"] == "passed"
    assert len(record["iterations_s"][0]) == 100_000


@pytest.mark.ids("NT2")
@pytest.mark.parametrize("variant", ["taskqueue", "taskqueue:queue"])
def test_a_hundred_thousand_exchanges_of_small_blocks_deliver_every_element(tmp_path, variant):
    code, output, [record] = run(1, [request(variant, bytes=[64, 64], iterations=100_000)], tmp_path)
    assert code == 0, output
    assert record["verification"] == {"status": "passed", "against": "every element"}
    assert record["events"]["arrivals"] == 2 * len(record["iterations_s"][0]) == 200_000


@pytest.mark.ids("NM2")
def test_ten_thousand_exchanges_with_copies_end(tmp_path):
    code, output, [record] = run(1, [request("taskqueue:device", bytes=[8, 80], iterations=10_000)], tmp_path)
    assert code == 0, output
    assert record["events"]["copies_in"] == record["events"]["copies_out"] == 20_000


@pytest.mark.ids("NI6", "NI7", "NT5", "NM5", "NM3", "NT3")
def test_a_record_has_the_protocol_and_the_counts(tmp_path):
    plain = request("taskqueue:queue,device", warmup=3, iterations=10, repetitions=4)
    looked = request("taskqueue", detail="posting", timeline=True, iterations=2)
    code, output, [timed, detailed] = run(2, [plain, looked], tmp_path)
    assert code == 0, output
    assert [len(test) for test in timed["iterations_s"]] == [13] * 4
    exchanges = 13 * 4 * len(SIZES)
    assert {
        name: timed["events"][name] for name in ("tasks", "sends", "arrivals", "copies_in", "copies_out")
    } == dict.fromkeys(("tasks", "sends", "arrivals", "copies_in", "copies_out"), exchanges)
    assert timed["events"]["launches"] == 13 * 4 and timed["events"]["illegal_moves"] == 0
    assert not {"blocks", "timeline", "clock", "segments_s"} & set(timed)  # nothing is logged where it is timed
    kinds = {event["kind"] for event in detailed["timeline"] if event["block"] >= 0}
    assert kinds == {"pack", "post", "send", "receive", "notify", "unpack"}
    assert {event["rank"] for event in detailed["timeline"]} == {0, 1}
    assert all(event["end_s"] >= event["begin_s"] for event in detailed["timeline"])
    assert all(s > 0 for s in detailed["blocks"]["posting_s"])


@pytest.mark.ids("NC8")
def test_ranks_of_a_node_take_devices_in_turn(tmp_path):
    line = request("baseline", iterations=1)
    code, output, [record] = run(2, [line], tmp_path, HALOSCOPE_HOST_DEVICE="devices=2")
    assert code == 0, output
    assert len(set(record["environment"]["device"]["of_ranks"])) == 2


@pytest.mark.parametrize("variant", ["baseline:testany", "taskqueue"])
def test_a_run_that_is_stuck_ends_soon_with_the_state_of_every_block(tmp_path, variant):
    line = request(variant, iterations=1_000_000, limit_s=1)
    begin = time.monotonic()
    # the device of one rank is lost: no more kernels, so its peer gets nothing
    code, output, found = run(2, [line], tmp_path, faulty_program(), HALOSCOPE_TEST_DEVICE="devices=2,lost=40")
    assert time.monotonic() - begin < 30
    assert code != 0
    assert "the device is lost" in output or all(f"block {b}: packed" in output for b in range(len(SIZES)))
    assert found == []


def test_a_blocking_send_that_never_ends_is_reported_with_the_state_of_every_block(tmp_path):
    line = request("taskqueue:blocking", bytes=[8_000_000], iterations=1_000_000, limit_s=100)
    (tmp_path / "lines").write_text(json.dumps(line) + "\n")
    words = ["--requests", tmp_path / "lines", "--watchdog", "2", "--inject", "hang:rank=1,step=5"]
    start = launch.launcher_words(launch.mpiexec(), 2, 1)
    code, output = run_group([*start, build.rank_program(), *words], tmp_path)
    assert code != 0
    assert "made no progress" in output and "block 0: packed" in output, output


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"variant": "taskqueue:chanel"}, "channel"),
        ({"workload": "XXL"}, "XS"),
        ({"bytes": [9]}, "multiples of 8"),
        ({"threads": 2000}, "use 1 to 1024"),
        ({"check": "some"}, "sampled"),
    ],
)
def test_what_cannot_be_exchanged_is_skipped_with_the_reason(tmp_path, more, reason):
    lines = [request("baseline", **more), request("baseline", iterations=2)]
    code, text, [skipped, done] = run(1, lines, tmp_path)
    assert code == 2
    assert skipped["kind"] == "skipped" and done["kind"] == "blocks"
    assert reason in skipped["reason"], text


@pytest.mark.ids("NP2")
def test_more_blocks_than_a_device_holds_are_refused_with_numbers(tmp_path):
    code, _, [skipped] = run(1, [request("taskqueue")], tmp_path, HALOSCOPE_HOST_DEVICE="resident=2")
    assert code == 2
    assert "all 4 blocks of 4 threads" in skipped["reason"] and "holds 2" in skipped["reason"]
