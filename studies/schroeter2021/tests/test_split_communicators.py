"""Split communicators of fences on 2 to 16 ranks: groups of at most three ranks, no deadlock."""

from __future__ import annotations

import pytest

from haloscope.measure import launch
from test_cpp import BUILD, run_group

RANKS = range(2, 17)


@pytest.mark.ids("SD5")
@pytest.mark.parametrize("ranks", [n if n in (2, 3, 16) else pytest.param(n, marks=pytest.mark.long) for n in RANKS])
def test_fences_of_split_communicators_end_on_any_number_of_ranks(ranks, tmp_path):
    program = BUILD / "tests" / "test_mpi"
    words = launch.launcher_words(launch.mpiexec(), ranks, 1)
    code, output = run_group([*words, program, "--gtest_filter=RmaFence.SD5_Fences*"], tmp_path)
    assert code == 0, output[-3000:]
    assert "[  PASSED  ] 1 test." in output
