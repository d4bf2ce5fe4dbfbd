"""A model of the ocean code Veros, with its halo exchange replaced: the same bits in every exchange."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from haloscope import veros
from haloscope.errors import UsageError
from haloscope.measure import launch
from paths import ROOT


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """A Python environment of its own with Veros, which has wishes of its own for other packages."""
    place = tmp_path_factory.mktemp("veros")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    words = [
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "veros==1.7.0",
        "mpi4py>=4",
        "cffi",
        "click",
        "pytest",
    ]
    subprocess.run([python, *words], check=True)
    return python


def run(words) -> subprocess.CompletedProcess:
    mpi = launch.mpiexec()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "LD_LIBRARY_PATH": str(mpi.parent.parent / "lib")}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [(2, 1), (1, 2), (2, 2)])
def test_veros_gets_the_same_bits_in_every_exchange(python, ranks):
    start = [launch.mpiexec(), "-n", str(ranks[0] * ranks[1]), python, "-m", "mpi4py"]
    done = run([*start, ROOT / "examples" / "veros" / "compare.py", *map(str, ranks)])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "exchanges, the same bits" in done.stdout


class Exchange:
    """Is refused when it is freed for the first time."""

    tries = 0

    def free(self) -> None:
        self.tries += 1
        if self.tries == 1:
            raise UsageError("another thread")


def test_what_cannot_be_freed_is_freed_by_a_later_uninstall(monkeypatch):
    own, tried = object(), [Exchange(), Exchange()]
    distributed, restart = (SimpleNamespace(exchange_overlap=own, dist_context_only=lambda **_: list) for _ in range(2))
    monkeypatch.setattr(veros, "_veros", lambda: (distributed, restart))
    monkeypatch.setattr(veros, "_exchanges", dict(enumerate(tried)))
    monkeypatch.setattr(veros, "_exchange_overlap", "replaced")
    veros.install()
    for _ in tried:
        with pytest.raises(UsageError):
            veros.uninstall()
        assert distributed.exchange_overlap == list("replaced")
    veros.uninstall()
    assert [each.tries for each in tried] == [3, 2]
    assert distributed.exchange_overlap is restart.exchange_overlap is own
    assert not veros._exchanges


TEST_THAT_SPAWNS = """\
import subprocess
import sys


def test_of_ranks():
    subprocess.check_call([sys.executable, "-m", "mpi4py", __file__.replace("some_test", "kernel")])
"""
KERNEL = """\
import sys

import numpy as np
from mpi4py import MPI
from veros import runtime_settings, runtime_state
from veros.distributed import scatter

whole = np.arange(64.0).reshape(8, 8)
if MPI.COMM_WORLD.size == 1:
    ranks = MPI.COMM_SELF.Spawn(sys.executable, ["-m", "mpi4py", sys.argv[-1]], maxprocs=4)
    for rank in range(4):
        part = ranks.recv(source=rank)
        x, y = 2 * (rank % 2), 2 * (rank // 2)
        assert np.array_equal(part, EXPECTED), part
else:
    runtime_settings.num_proc = (2, 2)
    import veros.core.operators
    part = ACTION
    runtime_settings.mpi_comm.Get_parent().send(part, 0)
"""
SCATTERED = 'scatter(whole if runtime_state.proc_rank == 0 else np.empty((6, 6)), {"xt": 4, "yt": 4}, ("xt", "yt"))'


@pytest.mark.long
@pytest.mark.parametrize(
    ("action", "expected", "status", "line"),
    [
        (SCATTERED, "whole[x : x + 6, y : y + 6]", 0, "passed, passed; [1, 1, 1, 1]"),
        (SCATTERED, "whole", 1, "failed, failed;"),
        ("whole", "whole", 1, "passed, passed; [0, 0, 0, 0]"),
        (
            f"np.zeros((6, 6)) if 'haloscope' in sys.modules else {SCATTERED}",
            "whole[x : x + 6, y : y + 6]",
            1,
            "passed, failed;",
        ),
    ],
    ids=["right", "wrong in both", "without exchanges", "wrong with this library"],
)
def test_the_exchange_is_installed_in_the_ranks_that_a_test_of_veros_spawns(
    python, tmp_path, action, expected, status, line
):
    folder = tmp_path / "test" / "distributed"
    folder.mkdir(parents=True)
    (folder / "some_test.py").write_text(TEST_THAT_SPAWNS)
    (folder / "kernel.py").write_text(KERNEL.replace("ACTION", action).replace("EXPECTED", expected))
    done = run([python, ROOT / "examples" / "veros" / "own_tests.py", tmp_path])
    assert done.returncode == status, done.stdout + done.stderr
    assert f"some_test.py::test_of_ranks: {line}" in done.stdout
