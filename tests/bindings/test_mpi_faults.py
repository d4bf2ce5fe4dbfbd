"""Calls of MPI that fail: every failure is an error on all ranks or ends the job by name, and none passes in
silence.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from haloscope.measure import answers, launch
from long_run import LONG
from paths import RANK_PROGRAMS

PROGRAMS = Path(os.environ["HALOSCOPE_BUILD"]) / "tests"
PROGRAM, FAULTS = PROGRAMS / "exchanges_under_faults_haloscope", PROGRAMS / "libmpi_faults.so"
SCRIPT = RANK_PROGRAMS / "exchanges_under_faults.py"
RANKS = 2
REASON = "a test has injected this failure"  # MPI's own text for the code
BEFORE_MPI = ("MPI_Init_thread",)  # where ranks have no numbers, and codes no texts that are added
# These replace an error handler that ends the job, so it still holds for them.
UNDER_A_FATAL_HANDLER = ("MPI_Comm_get_errhandler", "MPI_Comm_set_errhandler", "MPI_Win_set_errhandler")
JOBS = 4  # at once: most of them wait for a rank that is gone
# Strategy, and whose memory the fields are in; "stepper": a Stepper steps them; "c", "fortran", "python": the language
# of the program; "mpi4py": a program in Python, where calls of mpi4py fail. The first few are tried in every test run.
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
    ("direct/partitioned:late", "own"),
    ("direct/neighbor:persistent", "own"),
    ("ordered/rma-fence:get", "own"),
    ("direct/rma-fence:split", "own"),
    ("direct/rma-pscw", "own"),
    ("ordered/rma-pscw:get", "own"),
    ("direct/rma-lock", "own"),
    ("ordered/rma-lock:get,flag", "own"),
    ("direct/rma-lockall:rget", "own"),
    ("direct/rma-lockall:flag,separate", "own"),
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
# The same, with what exchanges_under_faults_haloscope calls the way in which they are set up.
SET_UPS = [
    ("ordered/p2p", "guard"),
    ("direct/shared:packed", "guard"),
    ("direct/auto", "boxes"),
    ("ordered/persistent", "cartesian"),
    ("ordered/p2p", "reordered"),
    ("direct/auto", "kept"),
    ("ordered/p2p", "files"),
    ("direct/p2p", "rows-to-columns"),
    ("direct/shared:packed", "rows-to-columns"),
    ("direct/auto", "rows-to-columns"),
    ("ordered/p2p", "reductions"),
    ("direct/rma-fence", "stepper-guard"),
    ("direct:merged/staged", "stepper-device"),
    ("ordered/p2p", "best"),
]
QUICK = CASES[:3]


def ranks_of(case: tuple[str, str]) -> int:
    return 3 if case[1] == "boxes" else RANKS


def skip_without(language: str):
    """Skip where the build has no programs in a language: those in C and Fortran need a Fortran compiler for its
    MPI.
    """
    if language in ("c", "fortran") and not list(PROGRAMS.parent.glob("libhaloscope_fortran.*")):
        pytest.skip("the build has no Fortran module")


def run(case: tuple[str, str], ranks: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    strategy, memory = case
    skip_without(memory)
    program = {
        "python": [sys.executable, str(SCRIPT), strategy],
        "halves": [sys.executable, str(SCRIPT), strategy, memory],
        "mpi4py": [sys.executable, str(SCRIPT), strategy, memory],
        "open": [sys.executable, str(SCRIPT.with_name("open_exchange_under_faults.py")), strategy],
        "c": [str(PROGRAMS / "exchanges_under_faults_c"), strategy],
        "fortran": [str(PROGRAMS / "exchanges_under_faults_fortran"), strategy],
    }.get(memory, [str(PROGRAM), *case])
    with tempfile.TemporaryDirectory() as folder:  # no run finds the choices or files of another
        cache = {"HALOSCOPE_CACHE": folder} if memory == "kept" else {}
        return start(program, ranks or ranks_of(case), Path(folder), **cache, **environment)


def start(
    program: list[str], ranks: int = RANKS, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    words = [*launch.launcher_words(launch.mpiexec(), ranks, 1), *program]
    variables = {**os.environ, "LD_PRELOAD": str(FAULTS), "HALOSCOPE_PATIENCE": "1", **environment}
    return subprocess.run(words, env=variables, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def calls_of(case: tuple[str, str], folder: Path) -> dict[str, int]:
    """Return how often the rank with the most calls of a function calls it, by function."""
    path = folder / "calls"
    sound = run(case, HALOSCOPE_TEST_CALLS=str(path))
    assert not wrong_end(case, sound, ""), sound.stdout + sound.stderr
    return most_calls(path)


def most_calls(path: Path) -> dict[str, int]:
    """Return the numbers of a file of calls, by function: those of the rank with the most."""
    calls: dict[str, int] = defaultdict(int)
    for line in path.read_text().splitlines():
        _, function, number = line.split()
        calls[function] = max(calls[function], int(number))
    return calls


@dataclass(frozen=True)
class Outcome:
    """How a run with a fault ended. wrong: "" where it ended as it must."""

    fault: str
    injected: bool
    wrong: str


def try_fault(
    fault: str, start_with: Callable[..., subprocess.CompletedProcess[str]], judge: Callable[..., str]
) -> Outcome:
    """Run a program with a fault. judge: what is wrong with a run's end, given the function that fails, "" for none."""
    try:
        ended = start_with(HALOSCOPE_TEST_FAULT=fault)
    except subprocess.TimeoutExpired as late:
        return Outcome(fault, True, f"waits: {late.stdout!r} {late.stderr!r}")
    injected = "fault: rank" in ended.stderr
    function = fault.split(":", maxsplit=1)[0] if injected else ""
    wrong = judge(ended, function)
    wrong = wrong and f"{wrong}, rc {ended.returncode}: {ended.stdout + ended.stderr}"
    return Outcome(fault, injected, wrong)


def failed(function: str) -> str:
    """Return the regular expression of an error that names a function and has MPI's text for its code."""
    return rf"{function} failed \(MPI error \d+\): {'.+' if function in BEFORE_MPI else REASON}"


def wrong_end(case: tuple[str, str], ended: subprocess.CompletedProcess[str], function: str) -> str:
    """Return what is wrong with the end of a case's exchanges in which a function has failed, "" for none."""
    ranks = ranks_of(case)
    right = ended.stdout.count(": right") == ranks
    if not function:
        return "" if right else "no fault, and yet an end"
    if right and (case[1], function) == ("mpi4py", "MPI_Get_library_version"):
        return ""  # the library looks at the MPI itself
    if ": wrong" in ended.stdout:
        return "wrong numbers"
    if is_fatal(ended, function):
        return "" if function in UNDER_A_FATAL_HANDLER else "a fatal handler"
    if right and len(re.findall(rf"^report: .*without .*{failed(function)}", ended.stdout, re.MULTILINE)) == ranks:
        return ""  # `auto` does without a candidate, and reports why
    refusals = re.findall(r"^rank \d+: refused: (.*)", ended.stdout, re.MULTILINE)
    named = r"mpi4py's [\w.]+" if case[1] == "mpi4py" else function
    if len(refusals) == ranks and any(re.search(failed(named), text) for text in refusals):
        return ""
    return "" if names_rank_and_call(ended, named) else "silence"


def is_fatal(ended: subprocess.CompletedProcess[str], function: str) -> bool:
    """Whether the error handler of the call's communicator or window would have ended the job in MPI."""
    return f"fatal handler of {function}" in ended.stderr


def names_rank_and_call(ended: subprocess.CompletedProcess[str], function: str) -> bool:
    """Whether an error of the library ended the job."""
    rank = "a rank" if function in BEFORE_MPI else r"rank \d+"
    return re.search(rf"^haloscope: .*{rank}: {failed(function)}", ended.stderr, re.MULTILINE) is not None


def faults_of(function: str, calls: int) -> list[str]:
    """Return which calls of a function fail, on all ranks or one, each in a run of its own. Polls have any number of
    calls.

    Faults on one rank take a second each, for the ranks wait for each other.
    """
    calls = min(calls, 200)
    everywhere, alone = ({1, 2, 5, 14, calls}, {(1, 0), (1, 1), (calls, 1)}) if LONG else ({1}, set())
    numbers = [(n, "") for n in sorted(everywhere)] + [(n, f":{rank}") for n, rank in sorted(alone)]
    return [f"{function}:{n}{ranks}" for n, ranks in numbers if n <= calls]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case in QUICK else [pytest.mark.long], id="-".join(case))
        for case in CASES + SET_UPS
    ],
)
def test_no_failed_call_passes_in_silence(case, tmp_path, record_property):
    try_case(case, faults_in(calls_of(case, tmp_path)), record_property)


def try_case(case: tuple[str, str], faults: list[str], record_property: Callable) -> None:
    """Run a case with each fault, as try_faults does."""
    try_faults(faults, functools.partial(run, case), functools.partial(wrong_end, case), record_property)


def faults_in(calls: dict[str, int]) -> list[str]:
    """Return which calls of each function of `calls` fail."""
    return [fault for function, number in sorted(calls.items()) for fault in faults_of(function, number)]


def try_faults(faults: list[str], start_with: Callable, judge: Callable, record_property: Callable) -> None:
    """Run a program with each fault, and keep how many failures that were. start_with, judge: as in try_fault."""
    with ThreadPoolExecutor(JOBS) as pool:
        found = list(pool.map(lambda fault: try_fault(fault, start_with, judge), faults))
    record_property("failures", sum(outcome.injected for outcome in found))
    bad = [outcome for outcome in found if outcome.wrong]
    assert not bad, f"{len(bad)} of {len(faults)} faults: " + "\n".join(f"{o.fault}: {o.wrong[:600]}" for o in bad)


@pytest.mark.parametrize(
    ("language", "function", "numbers"),
    [
        ("python", "MPI_Iallreduce", (1,)),  # of hs_agree_f()
        pytest.param("python", "MPI_Allgather", (1,), marks=pytest.mark.long),  # of hs_gather_f()
        pytest.param("python", "MPI_Ibarrier", (1,), marks=pytest.mark.long),
        ("mpi4py", "MPI_Comm_get_attr", (1,)),
        ("fortran", "MPI_Iallreduce", (4,)),  # of hs_grid_agree()
    ],
)
def test_a_call_of_a_binding_that_is_refused_on_one_rank_leaves_none_waiting(
    language, function, numbers, record_property
):
    case, faults = ("ordered/p2p", language), [f"{function}:{n}:1" for n in (range(1, 13) if LONG else numbers)]
    try_case(case, faults, record_property)


@pytest.mark.parametrize("call", ["check_clean", "rebind"])
@pytest.mark.parametrize("ranks", [":1", pytest.param("", marks=pytest.mark.long)])
def test_a_collective_call_on_an_open_exchange_leaves_no_rank_waiting(call, ranks, record_property):
    case, faults = (call, "open"), [f"MPI_Iallreduce:1{ranks}"]
    try_case(case, faults, record_property)


def test_a_guarded_step_that_mpi_refuses_on_one_rank_leaves_none_waiting(tmp_path, record_property):
    case = ("direct/rma-fence", "stepper-guard")
    last = calls_of(case, tmp_path)["MPI_Iallreduce"]
    try_case(case, [f"MPI_Iallreduce:{last}:1"], record_property)


def test_a_window_that_mpi_refuses_is_an_error_with_the_bytes_needed_and_available():
    ended = run(("ordered/rma-fence", "own"), HALOSCOPE_TEST_FAULT="MPI_Win_allocate:1")
    named = r"MPI_Win_allocate failed .*; the window needs \d+ bytes, and \d+ bytes of memory are available"
    assert len(re.findall(rf"^rank \d: refused: {named}", ended.stdout, re.MULTILINE)) == RANKS, ended.stdout


@pytest.mark.parametrize("function", ["MPI_Comm_dup", "MPI_Waitall"])
def test_ranks_of_communicators_within_the_world_fail_together(function):
    allowed = {"OMPI_MCA_osc": "^rdma"} if " v4." in answers.information()["mpi_library"] else {}  # Open MPI's, there
    ended = run(("ordered/rma-lock:get", "halves"), 4, HALOSCOPE_TEST_FAULT=f"{function}:1", **allowed)
    refusals = re.findall(rf"^rank [01]: refused: {function} failed", ended.stdout, re.MULTILINE)
    assert len(refusals) == 4, ended.stdout + ended.stderr
