"""A model of the ocean code Veros, with its halo exchange replaced: the same bits in every exchange."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from haloscope.measure import launch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """A Python environment of its own with Veros, which has wishes of its own for other packages."""
    place = tmp_path_factory.mktemp("veros")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    words = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "veros==1.7.0", "mpi4py>=4", "cffi", "click"]
    subprocess.run([python, *words], check=True)
    return python


@pytest.mark.long
@pytest.mark.parametrize("ranks", [(2, 1), (1, 2), (2, 2)])
def test_veros_gets_the_same_bits_in_every_exchange(python, ranks):
    mpi = launch.mpiexec()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "LD_LIBRARY_PATH": str(mpi.parent.parent / "lib")}
    words = [mpi, "-n", str(ranks[0] * ranks[1]), python, "-m", "mpi4py", ROOT / "examples" / "veros" / "compare.py"]
    done = subprocess.run([*words, *map(str, ranks)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "exchanges, the same bits" in done.stdout
