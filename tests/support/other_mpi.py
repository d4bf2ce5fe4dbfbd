"""Builds of Haloscope on other MPI libraries, for the tests: fetched and built on first use, a skip with the reason if
not.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from paths import ROOT

UNAVAILABLE = 3
NEEDED = ("haloscope-rank", "haloscope_bridge")  # what the command line needs


@dataclass
class OtherMpi:
    """A build on another MPI."""

    name: str
    folder: Path
    environment: dict[str, str]

    @property
    def mpicxx(self) -> Path:
        """The wrapper of its compiler."""
        return ROOT / "build" / "mpi" / self.name / "bin" / "mpicxx"

    @property
    def mpiexec(self) -> Path:
        """Its launcher."""
        return self.mpicxx.with_name("mpiexec")

    def haloscope(self, *words, **more: str) -> subprocess.CompletedProcess:
        """Run the command line on this build; `more` are environment variables."""
        return self.python("-m", "haloscope.cli", *words, **more)

    def python(self, *words, limit_s: float = 200, **more: str) -> subprocess.CompletedProcess:
        """Run Python with this build as Haloscope's."""
        command = [sys.executable, *map(str, words)]
        return subprocess.run(
            command, env=self.environment | more, check=False, capture_output=True, text=True, timeout=limit_s
        )


def get(name: str, *targets: str) -> OtherMpi:
    """Return the build on an MPI of scripts/other_mpi.sh, with `targets`; skips where it cannot be installed."""
    return fetched(name, *(targets or NEEDED))


@functools.cache
def fetched(name: str, *targets: str) -> OtherMpi:
    """Return an MPI, with a build on it that has `targets`; skips where it is not to be had."""
    words = ["scripts/other_mpi.sh", name, *targets]
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
    lines = done.stderr.strip().splitlines() or ["nothing"]
    if done.returncode == UNAVAILABLE:
        pytest.skip(f"{name}: {lines[-1]}")
    assert done.returncode == 0, done.stderr[-4000:]
    folder = ROOT / "build" / name
    prefix = ROOT / "build" / "mpi" / name
    listed = subprocess.run(
        ["sh", "-c", f". {prefix}/env && env -0"], check=True, capture_output=True, text=True
    ).stdout
    environment = dict(pair.split("=", 1) for pair in listed.split("\0") if "=" in pair)
    environment.pop("HALOSCOPE_MPIEXEC", None)
    if libraries := [*prefix.rglob("libmpi.so.40")]:  # of Open MPI, for which mpi4py's wheel has a module too
        environment["MPI4PY_LIBMPI"] = str(libraries[0])
    return OtherMpi(name, folder, environment | {"HALOSCOPE_BUILD": str(folder)})


def default_mpiexec() -> str:
    """The mpiexec of the build that the tests as a whole run on."""
    from haloscope.measure import launch

    return os.fspath(launch.mpiexec())
