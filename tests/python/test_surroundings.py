"""Surroundings of others: no home folder, few variables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haloscope.measure import launch
from test_exchange import RANKS

HALOSCOPE = (sys.executable, "-m", "haloscope.cli")
RUN = ("run", "laplace2d", "--cells", "32x32", "--ranks", "2", "--strategy", "ordered/p2p", "--steps", "4", "--launches", "1",
       "--output", "r.jsonl")  # fmt: skip

# ---- a compute node or a container ---------------------------------------------------------------------------------------

KEPT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "HALOSCOPE_BUILD", "MPI4PY_LIBMPI")  # where programs and libraries are
UNKNOWN_USER = ("unshare", "-U", "--map-user=12345", "--map-group=12345")


def run_bare(folder: Path, *words, **variables: str) -> str:
    """Run a command in a folder with hardly a variable and no standard input; it must complain of nothing."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {"LC_ALL": "C"} | variables
    done = subprocess.run(list(map(str, words)), cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    said = (done.stdout + done.stderr).lower()
    assert done.returncode == 0, said
    assert not [word for word in ("traceback", "permission denied", "read-only") if word in said], said
    return done.stdout


@pytest.mark.parametrize(
    "variables", [{"HOME": "/proc/none"}, pytest.param({}, marks=pytest.mark.long)], ids=["/proc/none", "unset"]
)
def test_command_line_and_exchange_need_neither_a_home_nor_other_variables(tmp_path, variables):
    assert "passed" in run_bare(tmp_path, *HALOSCOPE, *RUN, **variables)
    start = (*launch.launcher_words(launch.mpiexec(), 2, 1), sys.executable, "-m", "mpi4py")
    assert run_bare(tmp_path, *start, RANKS / "random_exchanges.py", 3, 5, **variables).split() == ["right"]


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
def test_a_user_without_a_home_folder_measures(tmp_path):
    """Containers may run under a number that the system has no name and no home for."""
    if subprocess.run([*UNKNOWN_USER, sys.executable, "-c", ""], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make user namespaces")
    assert "passed" in run_bare(tmp_path, *UNKNOWN_USER, *HALOSCOPE, *RUN)


@pytest.mark.long
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_without_standard_streams_leaves_its_record(tmp_path, closed):
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", *HALOSCOPE, *RUN]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 1
