"""Late ranks are waited for and named; nothing in the library ends a healthy program."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import psutil
import pytest

from haloscope.measure import launch
from long_run import or_long
from paths import RANK_PROGRAMS

POLLING = ["ordered/p2p", "auto", "direct/shared:packed"]
LONG_POLLING = [
    "direct/persistent",
    "ordered/p2p:testany",
    "direct:merged/p2p:datatype",
    "ordered/partitioned",
    "ordered/neighbor",
    "ordered/rma-lock:get,flag",
    "direct/rma-lockall",
]
# Their waits are inside MPI's calls, where a thread of the library's looks after them.
BLOCKING = ["ordered/rma-fence"]
LONG_BLOCKING = [
    "direct/rma-pscw",
    "ordered/neighbor:blocking",
    "direct/rma-fence:get",
    "direct/rma-fence:split",
    "reference",
]


def command(ranks: int, script: str, *words: object) -> list[str]:
    return [
        *launch.launcher_words(launch.mpiexec(), ranks, 1),
        sys.executable,
        str(RANK_PROGRAMS / script),
        *map(str, words),
    ]


def run_command(words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "HALOSCOPE_PATIENCE": "1", **environment}
    return subprocess.run(words, env=variables, capture_output=True, text=True, timeout=120, check=False)


def run(strategy: str, how: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command(command(2, "late.py", strategy, how), **environment)


def rights(output: str) -> int:
    """Return how many ranks had the right halos. UCX may write between them, and they share lines."""
    return output.count("right")


def assert_reported(ended: subprocess.CompletedProcess[str], waited_for: str) -> None:
    """The job has ended with code 0, and rank 0 has reported its wait."""
    assert ended.returncode == 0, ended.stderr
    assert rights(ended.stdout) == 2, ended.stdout + ended.stderr
    assert re.search(rf"^haloscope: rank 0 has waited for \d+ s: {waited_for}", ended.stderr, re.M), ended.stderr


def assert_stalled(ended: subprocess.CompletedProcess[str], report: str) -> None:
    """The job has ended early, with this report."""
    assert ended.returncode != 0
    assert re.search(report, ended.stderr, re.M), ended.stderr
    assert "right" not in ended.stdout


@pytest.mark.parametrize("strategy", or_long(POLLING, LONG_POLLING))
def test_a_late_neighbour_is_named_while_it_is_waited_for(strategy):
    assert_reported(run(strategy, "sleep"), "rank 1 has not answered in exchange 3 of heat$")


@pytest.mark.parametrize("strategy", or_long(BLOCKING, LONG_BLOCKING))
def test_a_late_rank_is_reported_from_inside_blocking_calls(strategy):
    assert_reported(run(strategy, "sleep"), "other ranks have not answered in exchange 3 of heat$")


@pytest.mark.parametrize(
    ("strategy", "late"), [("ordered/p2p", "rank 1 has"), ("ordered/rma-fence", "other ranks have")]
)
def test_a_stalled_job_ends_on_request(strategy, late):
    ended = run(strategy, "sleep", HALOSCOPE_STALL="end")
    assert_stalled(ended, rf"^haloscope: rank 0: has waited for \d+ s: {late} not answered in exchange 3 of heat")


def test_a_rank_that_is_late_to_open_an_exchange_is_reported():
    assert_reported(run("ordered/p2p", "open"), "other ranks have not come to the call that makes an exchange$")


def out_of_step(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command(command(2, "out_of_step.py", *words), **environment)


DIFFERENCES = {
    "more": "exchange 4 of heat differs between rank {} and rank {}: "
    "rank 0 has changed slot 0 since its last exchange, rank 1 has not",
    "slot": "exchange 3 of heat differs between rank {} and rank {}: rank {} exchanges slot {}, rank {} slot {}",
    "accumulate": "exchange 4 of heat differs between rank {} and rank {}: rank 1 accumulates, rank 0 exchanges",
}


@pytest.mark.parametrize("how", DIFFERENCES)
@pytest.mark.parametrize("strategy", or_long(["ordered/p2p"], [*POLLING[1:], *LONG_POLLING, *LONG_BLOCKING]))
def test_the_guard_finds_ranks_that_make_other_exchanges(strategy, how):
    ended = out_of_step(strategy, how, "guard")
    assert "right" not in ended.stdout and "wrong" not in ended.stdout
    for rank in (0, 1):
        mine = int(how == "slot" and rank == 0)
        text = DIFFERENCES[how].format(rank, 1 - rank, rank, mine, 1 - rank, 1 - mine)
        assert f"refused: {text}" in ended.stdout, ended.stdout + ended.stderr


BY_SLOT = ["ordered/p2p", "direct/shared:packed", "ordered/rma-lock:get,flag"]
LONG_BY_SLOT = [
    "direct/persistent",
    "ordered/partitioned",
    "ordered/neighbor",
    "direct/rma-lock",
    "direct/rma-lockall",
    "ordered/rma-lockall:flag,get",
    "direct/rma-lockall:per-message",
]


@pytest.mark.parametrize("strategy", or_long(BY_SLOT, LONG_BY_SLOT))
def test_ranks_that_exchange_other_slots_wait_for_each_other_and_report_it(strategy):
    ended = out_of_step(strategy, "slot", HALOSCOPE_STALL="end")
    assert_stalled(ended, r"has waited for \d+ s: rank \d has not answered in exchange 3 of heat")


@pytest.mark.parametrize("strategy", or_long(["ordered/p2p"], [*POLLING[1:], *LONG_POLLING, *BLOCKING, *LONG_BLOCKING]))
def test_ranks_that_take_exchanges_in_another_order_wait_for_each_other_and_report_it(strategy):
    ended = out_of_step(strategy, "order", HALOSCOPE_STALL="end")
    assert_stalled(ended, r"has waited for \d+ s: .* in exchange 3 of (heat|wind)")


@pytest.mark.parametrize("strategy", or_long(["ordered/p2p"], [*POLLING[1:], *LONG_POLLING]))
def test_the_exchange_that_one_rank_makes_more_than_the_others_is_reported_at_the_end(strategy):
    ended = out_of_step(strategy, "more", HALOSCOPE_STALL="end")
    assert ended.returncode != 0
    report = r"rank 1: has waited for \d+ s: rank 0 has not answered in exchange 6 of heat"
    assert re.search(report, ended.stderr), ended.stderr


@pytest.mark.parametrize(
    ("strategy", "schedule"),
    or_long([("ordered/p2p", "bulk")], itertools.product([*POLLING, *BLOCKING], ("split", "comm-thread"))),
)
def test_a_rank_that_is_late_to_the_halos_of_a_step_is_reported(strategy, schedule):
    assert_reported(late_ranks("step", strategy, schedule), "")
    ended = late_ranks("step", strategy, schedule, HALOSCOPE_STALL="end")
    assert ended.returncode != 0 and "right" not in ended.stdout


@pytest.mark.parametrize("strategy", or_long(["ordered/p2p"], [*POLLING[1:], *LONG_POLLING]))
def test_a_rank_that_is_stopped_for_a_while_changes_nothing(strategy):
    ended = run(strategy, "stop", HALOSCOPE_PATIENCE="0")
    assert ended.returncode == 0, ended.stderr
    assert rights(ended.stdout) == 2, ended.stdout
    assert "haloscope:" not in ended.stderr


def late_ranks(how: str, *more: object, ranks: int = 2, **environment: str) -> subprocess.CompletedProcess[str]:
    program = Path(os.environ["HALOSCOPE_BUILD"]) / "tests" / "late_ranks_haloscope"
    words = [str(program), how, "2", *map(str, more)]
    return run_command([*launch.launcher_words(launch.mpiexec(), ranks, 1), *words], **environment)


@pytest.mark.parametrize("how", or_long(["boxes"], ["reorder"]))
def test_a_rank_that_is_late_to_make_a_grid_together_is_reported(how):
    assert_reported(late_ranks(how), "other ranks have not come to the call that makes a grid$")


@pytest.mark.parametrize("how", or_long(["blocking"], ["nonblocking", "gather"]))
def test_a_rank_that_is_late_for_a_reduction_is_reported(how):
    assert_reported(late_ranks(how), "other ranks have not come to a reduction of the step$")
    ended = late_ranks(how, HALOSCOPE_STALL="end")
    assert ended.returncode != 0 and "right" not in ended.stdout


SMALL, LARGE = 64, 65536  # columns; halos of the latter fill a window of their own
ENDS_TOGETHER = [("auto", SMALL), ("direct/shared:packed", LARGE), ("direct/rma-lockall", SMALL)]
LONG_ENDS_TOGETHER = [
    *((one, LARGE) for one in ("auto", "ordered/auto", "direct/shared+rma-lock", "reference")),
    *(
        (one, columns)
        for one in [*LONG_BLOCKING, *BLOCKING, "ordered/neighbor", "direct/rma-lock:flag"]
        for columns in (SMALL, LARGE)
    ),
]
ENDS_ALONE = [("ordered/p2p", LARGE), ("direct/shared:packed", SMALL)]
LONG_ENDS_ALONE = [
    (one, columns)
    for one in ("direct/persistent", "direct:merged/p2p:datatype", "ordered/partitioned", "direct/shared")
    for columns in (SMALL, LARGE)
]


LATE_END = "other ranks have not come to the end of"


@pytest.mark.parametrize(("strategy", "columns"), or_long(ENDS_TOGETHER, LONG_ENDS_TOGETHER))
def test_a_rank_that_is_late_to_end_an_exchange_is_reported(strategy, columns):
    assert_reported(late_ranks("end", strategy, columns), f"{LATE_END} the exchange of u$")


@pytest.mark.parametrize("strategy", or_long(["direct/shared"], ["auto"]))
def test_a_rank_that_is_late_to_end_accumulations_is_reported(strategy):
    assert_reported(late_ranks("end-accumulation", strategy, SMALL), f"{LATE_END} the exchange of u$")


@pytest.mark.parametrize(("strategy", "columns"), or_long(ENDS_ALONE, LONG_ENDS_ALONE))
def test_an_exchange_whose_strategy_needs_no_other_rank_ends_alone(strategy, columns):
    ended = late_ranks("end-alone", strategy, columns)
    assert ended.returncode == 0, ended.stderr
    assert rights(ended.stdout) == 2, ended.stdout + ended.stderr
    assert LATE_END not in ended.stderr


@pytest.mark.parametrize(("how", "resource"), [("end-stepper", "a window"), ("end-field", "memory that ranks share")])
def test_a_rank_that_is_late_to_end_a_stepper_or_a_shared_field_is_reported(how, resource):
    assert_reported(late_ranks(how), f"{LATE_END} {resource}$")


@pytest.mark.parametrize(
    ("how", "strategy"), [("throw", "ordered/rma-fence"), ("throw", "direct/p2p"), ("throw-shared", "direct/shared")]
)
@pytest.mark.parametrize("guard", ["0", "1"])
def test_an_exception_that_ends_exchange_or_field_in_cplusplus_waits_for_no_other_rank(how, strategy, guard):
    ended = late_ranks(how, HALOSCOPE_GUARD=guard, HALOSCOPE_STRATEGY=strategy)
    assert ended.returncode != 0
    assert "caught: the input is damaged" in ended.stdout, ended.stdout + ended.stderr


def test_an_exchange_that_the_guard_refused_is_freed_while_another_neighbour_goes_on():
    ended = late_ranks("more", ranks=3)
    assert "caught: exchange 3 of " in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.parametrize("how", ["raise", "raise-within"])
def test_an_exception_on_one_rank_ends_the_job(how):
    ended = run("ordered/p2p", how)
    assert ended.returncode != 0
    assert "FloatingPointError: the temperature is no number" in ended.stderr
    assert "haloscope: rank 1: an exception leaves this rank while exchanges are open" in ended.stderr
    assert "right" not in ended.stdout


@pytest.mark.long
def test_fifty_pauses_of_a_minute_change_nothing():
    random = Random(1)
    for _ in range(5):
        jobs = [
            command(
                random.choice([2, 3]),
                "late.py",
                random.choice([*POLLING, *LONG_POLLING, *BLOCKING, *LONG_BLOCKING]),
                "stop",
                60,
                random.randint(1, 5),
            )
            for _ in range(10)
        ]
        running = [subprocess.Popen(job, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for job in jobs]
        for job, process in zip(jobs, running, strict=True):
            out, err = process.communicate(timeout=900)
            assert process.returncode == 0, f"{job}: {err}"
            ranks = int(job[job.index("-n") + 1])
            assert rights(out) == ranks, f"{job}: {out}{err}"


@pytest.mark.long
def test_a_hundred_killed_ranks_take_their_jobs_with_them_and_leave_nothing():
    random = Random(2)

    def shared_files() -> set[str]:  # but those of MPICH, which leaves its own
        return {file.name for file in Path("/dev/shm").iterdir() if not file.name.startswith("mpich_")}

    before = shared_files()
    for _ in range(100):
        words = command(
            random.choice([2, 3]), "late.py", random.choice([*POLLING, *LONG_POLLING, *BLOCKING]), "endless"
        )
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            ranks = [int(process.stdout.readline()) for _ in range(int(words[words.index("-n") + 1]))]
            time.sleep(random.random())
            os.kill(random.choice(ranks), signal.SIGKILL)
            assert process.wait(timeout=60) != 0
        psutil.wait_procs([psutil.Process(rank) for rank in ranks if psutil.pid_exists(rank)], timeout=30)
        assert not [rank for rank in ranks if psutil.pid_exists(rank)], words
    assert shared_files() <= before
