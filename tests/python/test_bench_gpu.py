"""bench/gpu.py runs to its end on devices made of the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import gpu_cases, gpu_table
from haloscope.core import build
from haloscope.measure import answers, launch
from haloscope.report import records

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What a run on the host back end printed, and the folder of its records."""
    folder = tmp_path_factory.mktemp("gpu")
    built = build.rank_program().parent
    words = [sys.executable, str(ROOT / "bench" / "gpu.py"), "--device", "host", "--build", str(built), "--every", "29",
             "--output", str(folder)]  # fmt: skip
    mpi = Path(launch.mpiexec(built)).parent
    environment = os.environ | {"PATH": f"{mpi}:{os.environ['PATH']}"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder


def test_every_configuration_that_it_checks_is_right(measured):
    text, folder = measured
    records = [json.loads(line) for line in (folder / "verified.jsonl").read_text().splitlines()]
    assert len(records) > 20
    assert all(record["verification"]["status"] == "passed" for record in records)
    assert f"{len(records)} of {len(records)} configurations byte-identical" in text


def test_its_table_shows_every_kernel_and_the_steps(measured):
    text, folder = measured
    kernels = [json.loads(line) for line in (folder / "kernels.jsonl").read_text().splitlines()]
    assert not [line for line in kernels if "error" in line]
    exchanged = [json.loads(line) for line in (folder / "blocks.jsonl").read_text().splitlines()]
    assert exchanged and all(record["kind"] == "blocks" for record in exchanged)
    for form in ("laplace2d star", "laplace3d star", "advection3d dense", "advection3d separable"):
        assert f"| {form}" in text
    assert "| laplace3d star f32 | fused, 4 steps" in text
    assert "An imitated device" in text and "| laplace2d f32 128x128 |" in text
    assert "fused, 8 steps" in text and "pack, 6 faces" in text and "| steps | ranks |" in text
    bars = text[text.index("| bar | asked | reached | holds |") :]
    for what in (
        "share of the copy's rate",
        "fused over one by one",
        "pack: share",
        "share of the exchange hidden",
        "plain over best",
    ):
        assert what in bars
    assert (folder / "table.md").read_text().splitlines()[0] in text


@pytest.mark.parametrize("ranks", [1, 2])
def test_deep_halos_and_graphs_are_checked_too(ranks, tmp_path):
    asked = [
        gpu_cases.line(request, ranks, "host") for request in gpu_cases.deep(("ordered/staged", "direct/ipc"), ranks)
    ]
    (tmp_path / "lines").write_text("".join(json.dumps(line) + "\n" for line in asked))
    words = ["--requests", str(tmp_path / "lines"), "--output", str(tmp_path / "r.jsonl"), "--launch-id", "one"]
    assert answers.quietly(ranks, words, 300)[0] == 0
    found = records.read(tmp_path / "r.jsonl").records
    assert [r["verification"]["status"] for r in found] == ["passed"] * len(asked)
    assert {r["request"]["depth"] for r in found} >= {16, 64}
    assert any(r["request"].get("capture") for r in found) == (ranks == 1)


def test_validate_can_read_the_steps_that_it_measures(measured):
    _, folder = measured
    file = records.read(folder / "steps.jsonl")
    assert file.records and not file.bad_lines
    assert len({(r["id"], r["launch"]["id"]) for r in file.records}) == len(file.records)


def test_it_takes_the_records_of_a_calibration_along(measured):
    _, folder = measured
    found = [r for r in records.read(folder / "calibration.jsonl").records if r["kind"] == "calibration"]
    assert found and all(r["verification"]["status"] != "failed" for r in found)


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_every_request_has_an_id_of_its_own(ranks):
    for requests in (gpu_cases.verification(ranks, aware=True), gpu_cases.halo_path(ranks, small=False, aware=True)):
        lines = [gpu_cases.line(request, ranks, "cuda") for request in requests]
        assert len({line["id"] for line in lines}) == len({json.dumps(line["request"]) for line in lines}) == len(lines)


# ---- its kernels -----------------------------------------------------------------------------------------------------


def bench_gpu(*words: str) -> subprocess.CompletedProcess:
    """The program of the kernels on an imitated device."""
    program = build.rank_program().parent / "bench" / "bench_gpu"
    return subprocess.run([program, "--small", "--device", "host", *words], capture_output=True, text=True, check=False)


def test_cases_of_kernels_are_listed_the_most_valuable_first_and_run_by_name(tmp_path):
    listed = [json.loads(line) for line in bench_gpu("--list").stdout.splitlines()]
    names = [line["case"] for line in listed]
    assert len(set(names)) == len(names)
    stages = [("smoke", "bars", "depth").index(line["stage"]) for line in listed]
    assert stages == sorted(stages) and set(stages) == {0, 1, 2}
    for real in ("f32", "f64"):
        assert {f"laplace{d}d-star-{real}/stream/default" for d in (2, 3)} < set(names)
    file = tmp_path / "lines"
    for name in (names[0], "overlap/laplace2d-star-f32"):
        assert bench_gpu("--case", name, "--output", str(file)).returncode == 0
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert first["case"] == names[0] and first["imitated"] and first["gb_per_s"] > 0 < first["copy_gb_per_s"]
    assert len(second["serial_seconds"]) == len(second["together_seconds"]) == len(second["interior_seconds"])


def test_a_case_that_does_not_exist_is_named_with_those_near_it():
    done = bench_gpu("--case", "laplace2d-star-f32/stream/defualt")
    assert done.returncode == 2 and "did you mean laplace2d-star-f32/stream/default" in done.stderr


# ---- the bars of its table -------------------------------------------------------------------------------------------


def sweep_line(app: str, form: str, share: float, levels: int = 1, real: str = "f32") -> dict:
    """A kernel that takes 1/share of its copy's time."""
    return {"figure": "gpu-sweep", "app": app, "form": form, "real": real, "variant": "fused" if levels > 1 else "stream",
            "block": [0, 0, 0], "levels": levels, "seconds": [1.0], "copy_seconds": [share]}  # fmt: skip


def step_record(schedule: str, depth: int, step: float, cells: int = 16384) -> dict:
    """A measurement of two ranks whose sweeps take a second a step."""
    request = {"app": "laplace2d", "form": "star", "cells": [cells, cells], "ranks": 2, "strategy": "ordered/staged",
               "schedule": schedule, "depth": depth}  # fmt: skip
    return {"kind": "measurement", "request": request, "time_s": {"step": {"median": step}},
            "phases_s": {"compute": {"max": 1.0}}}  # fmt: skip


def verdicts(kernels: list[dict], steps: list[dict]) -> dict[str, str]:
    """Last cell of each bar's line, by its first."""
    lines = gpu_table.table(kernels, steps, [])
    rows = [line.strip("| ").split(" | ") for line in lines[lines.index("| bar | asked | reached | holds |") + 2 :]]
    return {row[0]: row[-1] for row in rows}


def test_a_bar_holds_from_what_was_asked_and_says_when_it_was_not_measured():
    good = [sweep_line("laplace2d", "star", 0.95), sweep_line("laplace2d", "star", 0.95 * 2.4 / 4 + 1e-9, 4),
            sweep_line("laplace3d", "star", 0.92), sweep_line("laplace3d", "star", 0.91, real="f64"),
            sweep_line("advection3d", "dense", 0.87, real="f64")]  # fmt: skip
    steps = [step_record("bulk", 1, 2.0), step_record("streams", 1, 1.2), step_record("bulk", 1, 9.0, cells=512)]
    found = verdicts(good, steps)
    assert found.pop("laplace2d star f32: share of the copy's rate") == "yes"
    assert found.pop("laplace2d star f32: steps a second, fused over one by one") == "yes"
    assert found.pop("laplace3d star f32: share of the copy's rate") == "yes"
    assert found.pop("laplace3d star f64: share of the copy's rate") == "no"  # types have kernels of their own
    assert found.pop("advection3d dense f64: share of the copy's rate") == "no"
    assert found.pop("laplace2d star 16384x16384, 2 ranks: plain over best") == "yes"  # 2 / 1.2
    assert set(found.values()) == {"not measured"} and len(found) == 1  # the other kernel
    slow = verdicts([*good[:1], sweep_line("laplace2d", "star", 0.3, 4)], [*steps[:1], step_record("streams", 1, 1.8)])
    assert [slow[what] for what in slow if "ranks" in what or "fused" in what] == ["no", "no"]


def overlap_line(serial: list[float], together: list[float], interior: float) -> dict:
    """A step of one process."""
    return {"figure": "gpu-overlap", "app": "laplace2d", "form": "star", "real": "f32", "cells": [16384, 16384, 1],
            "serial_seconds": serial, "together_seconds": together,
            "interior_seconds": [interior] * len(serial)}  # fmt: skip


def test_what_is_hidden_of_an_exchange_is_the_median_of_pairs_with_its_interval():
    line = overlap_line([2.0, 2.0, 3.0, 2.0, 2.0], [1.0, 1.1, 1.2, 1.5, 1.05], 1.0)
    found = gpu_table.overlap_of(line)
    assert found.hidden == pytest.approx([1.0, 0.9, 0.9, 0.5, 0.95]) and found.median == pytest.approx(0.9)
    assert gpu_table.median_interval(found.hidden) == (0.5, 1.0) and found.possible == 1.0
    assert gpu_table.median_interval(list(range(19))) == (4, 14)  # 95 % and more, by the binomial distribution
    assert verdicts([line], [])["laplace2d f32 16384x16384: share of the exchange hidden"] == "yes"
    longer = gpu_table.overlap_of(overlap_line([3.0], [2.0], 1.0))  # twice as long as what could hide it
    assert longer.median == longer.possible == 0.5


def block_record(variant: str, means: list[float], workload: str = "XL", ranks: int = 2) -> dict:
    """A record of blocks with some tests, each of one iteration that warms up and two that take the mean."""
    request = {"workload": workload, "ranks": ranks, "variant": variant, "warmup": 1}
    return {"kind": "blocks", "request": request, "iterations_s": [[9.0, mean, mean] for mean in means]}


def test_task_queues_are_compared_with_the_best_baseline_test_by_test():
    exchanged = [block_record("baseline:a", [1.3, 1.5]), block_record("baseline:b", [2.0, 2.0]),
                 block_record("taskqueue:c", [1.0, 1.0]), block_record("kernels:d", [0.1, 0.1]),
                 block_record("taskqueue:e", [4.0], workload="M"), {"kind": "failed"},
                 block_record("taskqueue:w", [3.0], ""), block_record("taskqueue:chunks=4", [2.0], "")]  # fmt: skip
    gains = {g.which: g for g in gpu_table.queue_gains(exchanged)}
    assert set(gains) == {"XL", "equal"}  # of M no baseline was measured
    assert (gains["XL"].slower, gains["XL"].faster) == ("baseline:a", "taskqueue:c")
    assert gains["XL"].ratios == [1.3, 1.5] and gains["equal"].median == 1.5
    rows = [
        line.split(" | ")
        for line in gpu_table.table([], [], exchanged)
        if "blocks XL" in line or "blocks equal" in line
    ]
    assert [row[-1].rstrip(" |") for row in rows] == ["yes", "yes"]


def test_the_largest_workload_is_exchanged_first():
    lines = gpu_cases.blocks(1, False, "cuda")
    assert lines[0]["request"]["workload"] == "XL" and lines[-1]["request"]["workload"] == "XS"
    assert len({line["id"] for line in lines}) == len(lines)


@pytest.mark.parametrize(("share", "floor", "holds"), [(0.8, 0.1, "yes"), (0.4, 0.95, "yes"), (0.7, 0.5, "no")])
def test_packing_is_fast_enough_where_it_is_no_slower_than_a_launch(share, floor, holds):
    line = {"figure": "gpu-pack", "cells": 256, "seconds": [1.0], "copy_seconds": [share], "one_piece_seconds": [floor]}
    assert verdicts([line], [])["pack: share of the copy's rate, or at the floor of a launch"] == holds
