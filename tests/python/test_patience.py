"""Late ranks are waited for and named; nothing in the library ends a healthy program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from haloscope.measure import launch

RANKS = Path(__file__).with_name("ranks")
POLLING = ["ordered/p2p", "auto", "direct/shared:packed"]
LONG_POLLING = [
    "direct/persistent",
    "ordered/p2p:testany",
    "direct:merged/p2p:datatype",
    "ordered/partitioned",
    "ordered/neighbor",
    "direct/rma-pscw",
    "ordered/rma-lock:get,flag",
    "direct/rma-lockall",
]
REPORT = r"^haloscope: rank 0 has waited for 1 s: rank 1 has not answered in exchange 3 of heat$"


def run(strategy: str, how: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [*launch.launcher_words(launch.mpiexec(), 2, 1), sys.executable, str(RANKS / "late.py")]
    variables = {**os.environ, "HALOSCOPE_PATIENCE": "1", **environment}
    return subprocess.run(
        [*words, strategy, how], env=variables, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("strategy", [*POLLING, *(pytest.param(one, marks=pytest.mark.long) for one in LONG_POLLING)])
def test_a_late_neighbour_is_named_while_it_is_waited_for(strategy):
    ended = run(strategy, "sleep")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("right") == 2
    assert re.search(REPORT, ended.stderr, re.MULTILINE), ended.stderr


@pytest.mark.parametrize(
    "strategy", ["ordered/p2p", *(pytest.param(one, marks=pytest.mark.long) for one in [*POLLING[1:], *LONG_POLLING])]
)
def test_a_rank_that_is_stopped_for_a_while_changes_nothing(strategy):
    ended = run(strategy, "stop", HALOSCOPE_PATIENCE="0")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("right") == 2
    assert "haloscope:" not in ended.stderr


def test_an_exception_on_one_rank_ends_the_job():
    ended = run("ordered/p2p", "raise")
    assert ended.returncode != 0
    assert "FloatingPointError: the temperature is no number" in ended.stderr
    assert "haloscope: rank 1 leaves by an exception while exchanges are open" in ended.stderr
    assert "right" not in ended.stdout


def test_a_stalled_job_ends_on_request():
    ended = run("ordered/p2p", "sleep", HALOSCOPE_STALL="end")
    assert ended.returncode != 0
    assert re.search(
        r"^haloscope: rank 0: has waited for 1 s: rank 1 has not answered in exchange 3 of heat",
        ended.stderr,
        re.MULTILINE,
    )
    assert "right" not in ended.stdout
