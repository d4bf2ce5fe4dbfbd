"""The same program on other MPI libraries, each with a build of its own: in the long run only."""

from __future__ import annotations

import json

import pytest

import other_mpi
from haloscope.measure import launch

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]  # the first test builds, while others run
SMALL = ("--cells", "24", "--launches", "1", "--steps", "4", "--repetitions", "2", "--output", "r.jsonl")
ON_BOTH = ("test_cpp.py", "test_cpp_ranks.py", "test_launch.py", "test_faults.py")
QUICK_ON_BOTH = ("test_mpi_faults.py", "test_exhausted_memory.py", "test_patience.py", "test_exchange.py")


@pytest.fixture
def openmpi(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return other_mpi.get("openmpi5")


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_exchange_is_right_on_open_mpi(ranks):
    openmpi = other_mpi.get("openmpi5", *other_mpi.NEEDED, "test_mpi")
    program = openmpi.folder / "tests" / "test_mpi"
    words = launch.launcher_words(launch.mpiexec(openmpi.folder), ranks, 1)
    done = openmpi.python(
        "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))", *words, program, limit_s=900
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "PASSED" in done.stdout


def test_a_run_on_open_mpi_is_verified_and_says_what_it_ran_on(openmpi, tmp_path):
    done = openmpi.haloscope(
        "run", "laplace2d", *SMALL, "--ranks", "1,2", "--strategy", "ordered/p2p,direct/persistent"
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert len(found) == 4
    for record in found:
        assert record["verification"]["status"] == "passed"
        assert record["environment"]["mpi_library"].startswith("Open MPI v5.")
        assert record["environment"]["probes"]["passed"] > 10


def test_a_killed_rank_is_named_on_open_mpi(openmpi):
    done = openmpi.haloscope("run", "laplace2d", *SMALL, "--ranks", "2", "--inject", "kill:rank=1,step=2")
    assert done.returncode == 1, done.stderr
    assert "rank 1" in done.stderr


def test_open_mpi_started_by_the_mpiexec_of_another_mpi_says_so(openmpi):
    foreign = other_mpi.default_mpiexec()
    if launch.flavour(launch.mpiexec()) == "openmpi":
        pytest.skip("the default MPI is an Open MPI too")
    done = openmpi.haloscope("run", "laplace2d", *SMALL, "--ranks", "2", HALOSCOPE_MPIEXEC=foreign)
    assert done.returncode != 0
    assert "mpiexec" in done.stderr and "another MPI" in done.stderr


@pytest.mark.parametrize("name", ["openmpi5", "openmpi4"])
@pytest.mark.parametrize("file", [*ON_BOTH, *QUICK_ON_BOTH])
def test_every_test_that_starts_ranks_passes_on(name, file):
    mpi = other_mpi.get(name, "all")
    quick = ("-m", "not long") if file in QUICK_ON_BOTH else ()
    words = ("-m", "pytest", "-q", "-rs", "-o", "timeout=3600", *quick, *other_mpi.ROOT.glob(f"tests/**/{file}"))
    # A sample of the strategy matrix: all of it takes hours, on one MPI.
    done = mpi.python(*words, limit_s=7000, HALOSCOPE_LONG="0")
    assert done.returncode == 0, done.stdout[-6000:]
