"""Calls of MPI that fail: every failure is an error on all ranks or ends the job by name, and none passes in silence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from haloscope.measure import answers, launch
from long_run import LONG

PROGRAMS = Path(os.environ["HALOSCOPE_BUILD"]) / "tests" / "cpp"
PROGRAM, FAULTS = PROGRAMS / "exchanges_under_faults_haloscope", PROGRAMS / "libmpi_faults.so"
SCRIPT = Path(__file__).with_name("ranks") / "exchanges_under_faults.py"
RANKS = 2
JOBS = 4  # at once: most of them wait for a rank that is gone
# Strategy, and whose memory the fields are in; "stepper": a Stepper steps them; "c", "fortran", "python": the language of the
# program; "mpi4py": a program in Python, where calls of mpi4py fail. The first few are tried in every test run.
CASES = [
    ("ordered/p2p", "own"),
    ("direct/auto", "own"),
    ("direct/shared", "shared"),
    ("ordered/rma-fence", "own"),
    ("ordered/p2p", "mpi4py"),
    ("direct/persistent", "own"),
    ("ordered/neighbor", "own"),
    ("direct/rma-lockall:flag", "own"),
    ("ordered/p2p:testany", "own"),
    ("ordered/p2p:blocking", "own"),
    ("direct:merged/p2p:datatype", "own"),
    ("ordered/partitioned", "own"),
    ("direct/neighbor:persistent", "own"),
    ("ordered/rma-fence:get", "own"),
    ("direct/rma-fence:split", "own"),
    ("direct/rma-pscw", "own"),
    ("ordered/rma-pscw:get", "own"),
    ("direct/rma-lock", "own"),
    ("ordered/rma-lock:get,flag", "own"),
    ("direct/rma-lockall:rget", "own"),
    ("ordered/rma-lockall:per-message", "own"),
    ("direct/shared:packed", "own"),
    ("direct/shared:pull", "shared"),
    ("ordered/shared:fence", "shared"),
    ("direct/auto", "shared"),
    ("reference", "own"),
    ("direct:merged/staged", "device"),
    ("direct:merged/staged:stream", "device"),
    ("direct:merged/aware", "device"),
    ("direct/ipc", "device"),
    ("direct:merged/taskqueue", "device"),
    ("direct:merged/auto-device", "device"),
    ("direct/p2p", "stepper"),
    ("ordered/rma-fence", "stepper"),
    ("ordered/p2p", "c"),
    ("direct/auto", "c"),
    ("direct/rma-lock", "c"),
    ("ordered/p2p", "fortran"),
    ("direct/shared:packed", "fortran"),
    ("direct/neighbor", "fortran"),
    ("ordered/p2p", "python"),
    ("direct/auto", "python"),
    ("direct/shared:packed", "python"),
]
QUICK = CASES[:5]


def run(case: tuple[str, str], ranks: int = RANKS, **environment: str) -> subprocess.CompletedProcess[str]:
    strategy, memory = case
    program = {
        "python": [sys.executable, str(SCRIPT), strategy],
        "halves": [sys.executable, str(SCRIPT), strategy, memory],
        "mpi4py": [sys.executable, str(SCRIPT), strategy, memory],
        "open": [sys.executable, str(SCRIPT.with_name("open_exchange_under_faults.py")), strategy],
        "c": [str(PROGRAMS / "exchanges_under_faults_c"), strategy],
        "fortran": [str(PROGRAMS / "exchanges_under_faults_fortran"), strategy],
    }.get(memory, [str(PROGRAM), *case])
    words = [*launch.launcher_words(launch.mpiexec(), ranks, 1), *program]
    variables = {**os.environ, "LD_PRELOAD": str(FAULTS), "HALOSCOPE_PATIENCE": "1", **environment}
    return subprocess.run(words, env=variables, capture_output=True, text=True, timeout=60, check=False)


def calls_of(case: tuple[str, str], folder: Path) -> dict[str, int]:
    """Return how often the rank with the most calls of a function calls it, by function."""
    path = folder / "calls"
    sound = run(case, HALOSCOPE_TEST_CALLS=str(path))
    assert sound.stdout.count(": right") == RANKS, sound.stdout + sound.stderr
    calls: dict[str, int] = defaultdict(int)
    for line in path.read_text().splitlines():
        _, function, number = line.split()
        calls[function] = max(calls[function], int(number))
    return calls


def verdict(case: tuple[str, str], fault: str) -> str:
    """Return how a run with a fault ended; "" where it ended as it must."""
    function = fault.split(":", maxsplit=1)[0]
    named = r"mpi4py's [\w.]+" if case[1] == "mpi4py" else function
    try:
        ended = run(case, HALOSCOPE_TEST_FAULT=fault)
    except subprocess.TimeoutExpired as late:
        return f"waits: {late.stdout!r} {late.stderr!r}"
    if "fault: rank" not in ended.stderr:
        return "" if ended.stdout.count(": right") == RANKS else f"no fault, and yet: {ended.stdout + ended.stderr}"
    if (case[1], function) == ("mpi4py", "MPI_Get_library_version") and ended.stdout.count(": right") == RANKS:
        return ""  # the library looks at the MPI itself
    if ": wrong" in ended.stdout:
        return f"wrong: {ended.stdout + ended.stderr}"
    if (
        ended.stdout.count(": right") == RANKS
        and len(re.findall(rf"^report: .*without .*{function} failed", ended.stdout, re.M)) == RANKS
    ):
        return ""  # `auto` does without a candidate, and reports why
    refusals = re.findall(r"^rank \d+: refused: (.*)", ended.stdout, re.MULTILINE)
    if len(refusals) == RANKS and any(re.search(named, text) for text in refusals):
        return ""
    if re.search(rf"^haloscope: .*rank \d+: {named} failed", ended.stderr, re.MULTILINE):
        return ""
    return f"rc {ended.returncode}: {ended.stdout + ended.stderr}"


def faults_of(function: str, calls: int) -> list[str]:
    """Return which calls of a function fail, on all ranks or one, each in a run of its own. Polls have any number of calls.

    Faults on one rank take a second each, for the ranks wait for each other.
    """
    calls = min(calls, 200)
    everywhere, alone = ({1, 2, 5, 14, calls}, {1, calls}) if LONG else ({1}, set())
    numbers = [(n, "") for n in sorted(everywhere)] + [(n, ":1") for n in sorted(alone)]
    return [f"{function}:{n}{ranks}" for n, ranks in numbers if n <= calls]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in QUICK else [pytest.mark.long], id="-".join(case)) for case in CASES]
)
def test_no_failed_call_passes_in_silence(case, tmp_path):
    faults = [
        fault for function, calls in sorted(calls_of(case, tmp_path).items()) for fault in faults_of(function, calls)
    ]
    with ThreadPoolExecutor(JOBS) as pool:
        found = list(pool.map(lambda fault: verdict(case, fault), faults))
    print(f"{'-'.join(case)}: {len(faults)} faults")
    bad = {fault: end for fault, end in zip(faults, found, strict=True) if end}
    assert not bad, f"{len(bad)} of {len(faults)} faults: " + "\n".join(f"{k}: {v[:600]}" for k, v in bad.items())


@pytest.mark.parametrize(
    ("language", "function", "numbers"),
    [
        ("python", "MPI_Iallreduce", (1, 2)),  # of hs_agree_f()
        ("python", "MPI_Ibarrier", (1,)),  # of hs_gather_f()
        ("python", "MPI_Allgather", (1,)),
        ("mpi4py", "MPI_Comm_get_attr", (1,)),
        ("fortran", "MPI_Iallreduce", (4,)),  # of hs_grid_agree()
    ],
)
def test_a_call_of_a_binding_that_is_refused_on_one_rank_leaves_none_waiting(language, function, numbers):
    case, faults = ("ordered/p2p", language), [f"{function}:{n}:1" for n in (range(1, 13) if LONG else numbers)]
    with ThreadPoolExecutor(JOBS) as pool:
        found = list(pool.map(lambda fault: verdict(case, fault), faults))
    assert not any(found), found


@pytest.mark.parametrize("call", ["check_clean", "rebind"])
@pytest.mark.parametrize("ranks", ["", ":1"])
def test_a_collective_call_on_an_open_exchange_leaves_no_rank_waiting(call, ranks):
    assert not verdict((call, "open"), f"MPI_Iallreduce:1{ranks}")


@pytest.mark.parametrize("function", ["MPI_Comm_dup", "MPI_Waitall"])
def test_ranks_of_communicators_within_the_world_fail_together(function):
    allowed = {"OMPI_MCA_osc": "^rdma"} if " v4." in answers.information()["mpi_library"] else {}  # Open MPI's, there
    ended = run(("ordered/rma-lock:get", "halves"), 4, HALOSCOPE_TEST_FAULT=f"{function}:1", **allowed)
    refusals = re.findall(rf"^rank [01]: refused: {function} failed", ended.stdout, re.MULTILINE)
    assert len(refusals) == 4, ended.stdout + ended.stderr
