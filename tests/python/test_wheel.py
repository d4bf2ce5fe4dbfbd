"""A wheel holds everything: the command line, the rank program, the libraries, the exchange."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from haloscope.measure import launch

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_pip_install_gives_command_line_library_and_exchange(tmp_path):
    mpi = launch.mpiexec().parent
    environment = {key: value for key, value in os.environ.items() if key != "HALOSCOPE_BUILD"}
    environment["PATH"] = os.pathsep.join([str(tmp_path / "venv" / "bin"), environment["PATH"], str(mpi)])
    environment["LD_LIBRARY_PATH"] = str(mpi.parent / "lib")  # where mpi4py looks for an MPI that is not the system's

    def run(*words) -> str:
        done = subprocess.run(
            list(map(str, words)), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    run(sys.executable, "-m", "venv", "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{ROOT}[exchange]")
    assert str(tmp_path / "venv") in run(tmp_path / "venv" / "bin" / "haloscope", "info")
    assert "passed" in run("haloscope", "run", "laplace2d", "--cells", "32x32", "--ranks", "2", "--steps", "4", "--launches", "1",
                           "--strategy", "ordered/p2p", "--output", "r.jsonl")  # fmt: skip
    abi = list((tmp_path / "venv").rglob("libhaloscope_exchange_abi.so"))
    assert len(abi) == (mpi / "mpicc_abi").exists()
    exchanges = ROOT / "tests" / "python" / "ranks" / "random_exchanges.py"
    assert run(launch.mpiexec(), "-n", "2", python, "-m", "mpi4py", exchanges, 5, 20).split() == ["right"]
