"""Calls of MPI that fail in haloscope-rank: the job ends with an exit code above 0, by rank and call, and no record is
wrong.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import test_mpi_faults as mpi_faults
from guest_cases import guest_cases
from haloscope.bridge import build

FUNCTIONS = mpi_faults.PROGRAMS.parent / "generated" / "mpi_functions.inc"
SHORT = ("--steps", "2", "--repetitions", "2")
LAPLACE = ("laplace2d", "--cells", "24x24", *SHORT)


def line(kind: str, **request) -> tuple[str, str]:
    """Return the words that make haloscope-rank serve one request."""
    return ("--request", json.dumps({"kind": kind, "id": kind, "request": request}))


def microbench(*patterns: str, **how) -> tuple[str, str]:
    return line("microbench", patterns=patterns, seconds=0.0001, repetitions=1, **how)


def point(part: str, cells: tuple[int, ...] = (24, 24), **choice) -> tuple[str, str]:
    return line("calibration", app="laplace2d", cells=cells, part=part, seconds=0.0001, repetitions=1, **choice)


# What haloscope-rank is started with.
CASES = {
    "run": (*LAPLACE, "--verify", "2", "--timeline", "on", "--trace", "trace.json"),
    "run-events": (*LAPLACE, "--events", "on", "--barrier", "on"),
    "run-seconds": (
        "laplace3d",
        "--cells",
        "12x12x12",
        "--seconds",
        "0.001",
        "--repetitions",
        "1",
        "--strategy",
        "direct/persistent",
    ),
    "run-reference": (*LAPLACE, "--strategy", "reference"),
    "run-shared": (*LAPLACE, "--memory", "shared", "--strategy", "direct/shared", "--verify", "2"),
    "run-windows": (*LAPLACE, "--strategy", "direct/rma-lockall", "--verify", "2"),
    "run-reordered": (*LAPLACE, "--reorder", "nodes", "--nodes", "2"),
    "run-device": (*LAPLACE, "--device", "host", "--strategy", "direct:merged/staged", "--verify", "2"),
    "run-threads": (*LAPLACE, "--threads", "2", "--schedule", "comm-thread"),
    "info": ("--info",),
    "probe": ("--probe", "all"),
    "pace": line("pace", seconds=0.01),
    "microbench-pairs": microbench("pingpong", "pingping", "batch", "batches", transport="p2p", bytes=[8, 1024]),
    "microbench-windows": microbench("pingpong", "batch", transport="rma-fence", bytes=[8]),
    "microbench-onesided": microbench("put", "get", bytes=[8]),
    "microbench-ring": microbench("exchange", transport="p2p", bytes=[8]),
    "microbench-collectives": microbench("allreduce", "allgather", bytes=[8]),
    "microbench-memory": microbench("stream", threads=1, bytes=[4096]),
    **{f"calibrate-{part}": point(part) for part in ("kernel", "pack", "exchange", "allreduce")},
    **{f"calibrate-{part}": point(part, device="host") for part in ("device-kernel", "device-copy")},
} | guest_cases("OF_THE_RANK_PROGRAM")
QUICK = ("info", "microbench-collectives")


def run(case: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return mpi_faults.start([str(build.rank_program()), *CASES[case]], **environment)


def wrong_end(ended: subprocess.CompletedProcess[str], function: str) -> str:
    """Return what is wrong with the end of a run in which a function has failed, "" for none."""
    if not function:
        return "" if is_sound(ended) else "no fault, and yet an end"
    if ended.returncode == 0:
        return "success"
    if mpi_faults.is_fatal(ended, function):
        return "" if function in mpi_faults.UNDER_A_FATAL_HANDLER else "a fatal handler"
    reasons = [record.get("reason", "") for record in records(ended)]
    if any(re.search(mpi_faults.failed(function), reason) for reason in reasons) or mpi_faults.names_rank_and_call(
        ended, function
    ):
        return ""
    return "silence"


def records(ended: subprocess.CompletedProcess[str]) -> list[dict]:
    return [json.loads(text) for text in ended.stdout.splitlines() if text.startswith("{") and text.endswith("}")]


def is_sound(ended: subprocess.CompletedProcess[str]) -> bool:
    return ended.returncode == 0 and ended.stdout.startswith("{") and '"skipped"' not in ended.stdout


def calls_of(case: str, folder) -> dict[str, int]:
    sound = run(case, HALOSCOPE_TEST_CALLS=str(folder / "calls"))
    assert is_sound(sound), sound.stdout + sound.stderr
    return mpi_faults.most_calls(folder / "calls")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in QUICK else [pytest.mark.long]) for case in CASES]
)
def test_no_failed_call_of_the_rank_program_passes_in_silence(case, tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    faults = mpi_faults.faults_in(calls_of(case, tmp_path))
    mpi_faults.try_faults(faults, functools.partial(run, case), wrong_end, record_property)


# Functions that the sources call and no program here reaches.
_LATER = "called only after another call has failed"
UNREACHED = {
    "MPI_Cancel": _LATER,
    "MPI_Group_intersection": _LATER,
    "MPI_Group_size": _LATER,
    "MPI_Test_cancelled": _LATER,
    "MPI_Type_create_hindexed_block": "for fields that another index than the first walks backwards",
}


@pytest.mark.long
def test_more_than_two_thousand_failures_hit_every_function_of_mpi_that_the_library_calls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exchanges = [functools.partial(mpi_faults.calls_of, case) for case in mpi_faults.CASES + mpi_faults.SET_UPS]
    programs = exchanges + [functools.partial(calls_of, case) for case in CASES]
    folders = [tmp_path / str(number) for number in range(len(programs))]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(mpi_faults.JOBS) as pool:
        tables = list(pool.map(lambda calls, folder: calls(folder), programs, folders))
    faults = [fault for calls in tables for fault in mpi_faults.faults_in(calls)]
    called = {function.removesuffix("_c") for calls in tables for function in calls}
    functions = {function.removesuffix("_c") for function in re.findall(r"FAULTY\((\w+)", FUNCTIONS.read_text())}
    assert called == functions - UNREACHED.keys()
    assert len(faults) > 2000
