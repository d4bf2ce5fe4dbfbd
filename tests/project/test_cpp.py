"""Runs the GoogleTest programs of the build, so that one pytest run holds everything: one item per suite, here without
ranks or on one, in test_cpp_ranks.py per suite and number of ranks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from haloscope.measure import launch
from long_run import LONG

BUILD = Path(os.environ["HALOSCOPE_BUILD"])
PROGRAMS = ("test_core", "test_device", "test_kernels", "test_mpi", "test_threads")
RANK_COUNTS = {"test_mpi": (1, 2, 3, 4, 6, 7, 8, 9)}  # the others run without mpiexec
RARE_RANKS = (4, 6, 7)  # in `make check-long` only, unless MOST_RANKS allows them
# With many more ranks than cores a spinning MPI takes seconds for what takes milliseconds otherwise; the suites of
# single transports run there in `make check-long` only.
FEW_RANKS = 3
ALONE = (
    "BlockSetup",
    "BlockVariant",
    "BlockClock",
    "BlockFaults",
    "BlockRequest",
    "HitProfile",
)  # other ranks add nothing
MOST_RANKS = {
    "Auto": 2,
    "BlockOrder": 2,
    "DeviceExchange": 2,
    "Devices": 2,
    "DeepHalos": 9,
    "Stepper": 4,
    "Strategies/Slots": 4,
    **dict.fromkeys(ALONE, 1),
}  # Auto: hundreds of exchanges a test; DeviceExchange, Devices: threads of streams wait too
# By number of ranks, slow suites that run there in `make check-long` only. Every test run has them on 1 rank and 3
# ranks, Transport on 2 and Strategies on 8 too.
NOT_ON = {
    7: {"DeepHalos"},
    8: {"DeepHalos", "Transport", "UserExchange"},
    9: {"Advection", "BlockSchemes", "Strategies", "Transport", "UserExchange"},
}
MANY_RANKED_SUITES = {
    "Advection",
    "DeepHalos",
    "Strategies",
    "Transport",
    "UserExchange",
    "LateNeighbour",
    "BlockSchemes",
}
# On 2 ranks in every test run; the other suites run there in `make check-long` only, and on 3 everywhere.
ON_TWO = MANY_RANKED_SUITES - {"Strategies"} | {"Auto", "BlockOrder", "DeviceExchange", "Devices", "Part", "Stepper"}
# More than 6 ranks are for these alone and, in `make check-long`, for the next ones: with all suites they took half of
# the time of test_cpp_ranks.py. 8 ranks are two in each dimension; rows of schroeter2021 require 7 and 8.
OF_THE_POISSON_SOLVER = {"Poisson", "RmaFence", "Shared"}
LONG_ON = {7: OF_THE_POISSON_SOLVER, 8: {"Accumulate", "DeviceExchange", "Hydro"} | OF_THE_POISSON_SOLVER}
# Of one suite. `make check-long` runs every combination instead of a sample of them.
LIMIT_S = 3500 if LONG else 240


def suites(program: str) -> list[str]:
    """Suites of a GoogleTest program; instances of a parametrised suite (All/Name/...) count as one."""
    path = BUILD / "tests" / program
    if not path.exists():
        return []
    listed = subprocess.run([path, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^([\w/]+)\.", listed, re.MULTILINE)


def cases(wanted=lambda ranks: ranks <= 1):
    """One case per suite and wanted rank count; a program that is not there is one case too, which fails."""
    for program in PROGRAMS:
        rank_counts = RANK_COUNTS.get(program, (0,))
        for suite in suites(program) or [""]:
            for ranks in filter(wanted, rank_counts if suite else rank_counts[:1]):
                if ranks > 6 and suite not in MANY_RANKED_SUITES | LONG_ON.get(ranks, set()):
                    continue
                name = f"{program}-{suite or 'is-built'}" + (f"-{ranks}-ranks" if ranks else "")
                usual = ranks <= MOST_RANKS.get(suite, FEW_RANKS)
                rare = not usual and (ranks in RARE_RANKS or suite not in MANY_RANKED_SUITES)
                rare = rare or suite in NOT_ON.get(ranks, ()) or (ranks == 2 and suite not in ON_TWO)
                yield pytest.param(program, suite, ranks, id=name, marks=[pytest.mark.long] if rare else [])


@pytest.mark.parametrize(("program", "suite", "ranks"), list(cases()))
def test_gtest(program, suite, ranks, tmp_path, request):
    check(program, suite, ranks, tmp_path, request)


def check(program, suite, ranks, tmp_path, request):
    """Run a suite, and note what its tests show."""
    path = BUILD / "tests" / program
    assert suite, f"{path} is not built; 'make build' builds it"
    report = tmp_path / "report.json"
    words = launch.launcher_words(launch.mpiexec(), ranks, 1) if ranks else []
    command = [*words, path, f"--gtest_filter={suite}.*", f"--gtest_output=json:{report}"]
    code, output = run_group(command, tmp_path)
    for name, outcome in outcomes(report, code, path, suite):
        ids = rows_of(name)
        if ids:
            where = f" ({ranks} ranks)" if ranks else ""
            request.node.user_properties.append(("covers", f"{' '.join(ids)}|{name}{where}|{outcome}"))
    assert code == 0, output[-6000:]


def rows_of(name: str) -> list[str]:
    """Checklist rows that a GoogleTest names, at the start of its own name or of its parameter's: W8_.../W13_..."""
    parts = name.rpartition(".")[2].split("/")
    return [row for part in parts for row in re.match(r"(?:[A-Z]+\d+_)*", part)[0].split("_")[:-1]]


def outcomes(report: Path, code: int, path: Path, suite: str) -> list[tuple[str, str]]:
    """Name and state of each test; all failed where the program died, or failed on another rank than the reporting
    one.
    """
    found = states(report)
    if code != 0 and "failed" not in {outcome for _, outcome in found}:
        return [(name, "failed") for name in names_of(path, suite)]
    return found


def names_of(path: Path, suite: str) -> list[str]:
    """Names of all tests of a suite."""
    command = [path, "--gtest_list_tests", f"--gtest_filter={suite}.*"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [f"{suite}.{name}" for name in re.findall(r"^  ([\w/]+)", listed, re.MULTILINE)]


def run_group(command: list, folder: Path) -> tuple[int, str]:
    """Run in a process group of its own, which is ended as a whole when it takes too long (a deadlock)."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=folder,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            output, _ = process.communicate(timeout=20)
            output += f"\nended after {LIMIT_S} s without a result: a deadlock?"
        return process.returncode, output


def states(report: Path) -> list[tuple[str, str]]:
    """Name and state of each test in GoogleTest's JSON report."""
    found = json.loads(report.read_text()) if report.exists() else {"testsuites": []}
    return [
        (f"{suite['name']}.{test['name']}", state(test)) for suite in found["testsuites"] for test in suite["testsuite"]
    ]


def state(test: dict) -> str:
    """passed, failed or skipped."""
    if test.get("failures"):
        return "failed"
    return "skipped" if test.get("result") == "SKIPPED" else "passed"
