"""Configuration of all tests: markers, the command line as a function, and checklist ids in the JUnit report."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parent
os.environ["HALOSCOPE_BUILD"] = str(Path(os.environ.get("HALOSCOPE_BUILD", ROOT / "build" / "release")).resolve())

# Tests run more ranks and threads than the machine has cores. A thread that spins there delays the thread that it waits
# for, and tests take ten times as long. So threads sleep while they wait, and MPICH stays with collective algorithms
# that let other ranks run, and gives a core away for longer than the system's yield does. Open MPI counts the ranks of
# one job only; it is asked to yield.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD", "1000000000")
os.environ.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
os.environ["HALOSCOPE_TRACE"] = "1"  # an internal error of the command line raises an exception
os.environ["HALOSCOPE_CACHE"] = ""  # no cached choices of earlier programs, and none for later ones


def pytest_configure(config):
    """Declare the markers."""
    config.addinivalue_line("markers", "ids(*names): rows of the studies' checklists that the test verifies")
    config.addinivalue_line("markers", "card: runs on a GPU, so that its rows count as verified on a GPU")
    config.addinivalue_line("markers", "long: slow; part of `make check-long` only")


def pytest_collection_modifyitems(items):
    """Write each test's checklist ids into the JUnit report, from which studies/coverage.md is made."""
    for item in items:
        ids = [name for mark in item.iter_markers("ids") for name in mark.args]
        if ids:
            item.user_properties.append(("ids", " ".join(ids)))
        if item.get_closest_marker("card"):
            item.user_properties.append(("device", "card"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Write the rank counts of the programs that a test started into the JUnit report."""
    import haloscope.measure.answers  # noqa: F401 (imports the unpatched function: runs with --info do not count)
    from haloscope.measure import launch

    started, words = set(), launch.launcher_words

    def noted(path, ranks, *more):
        started.add(ranks)
        return words(path, ranks, *more)

    try:
        with mock.patch.object(launch, "launcher_words", noted):
            return (yield)
    finally:
        if started:
            item.user_properties.append(("ranks", " ".join(map(str, sorted(started)))))


def segments() -> set[Path]:
    """Return the files of MPI libraries in shared memory."""
    from haloscope.measure.doctor import process_view

    return {file for pattern in process_view.SEGMENTS for file in process_view.SHARED_MEMORY.glob(pattern)}


SEGMENTS = pytest.StashKey[set[Path]]()  # segments from before all tests


def is_old(file: Path) -> bool:
    """Return whether a segment is so old that each rank of its job has opened it, or none will."""
    try:
        return time.time() - file.stat().st_mtime > 60
    except FileNotFoundError:
        return False


@pytest.fixture(autouse=True)
def no_segments_of_killed_jobs(pytestconfig):
    """Remove the files of killed jobs from shared memory. In a long run, the files of MPICH alone would fill it."""
    from haloscope.measure.doctor import process_view

    before = pytestconfig.stash.setdefault(SEGMENTS, segments())
    yield
    if left := {file for file in segments() - before if is_old(file)}:  # other jobs may not have opened theirs yet
        used = process_view.mapped_files(process_view.SHARED_MEMORY)
        for file in left:
            if str(file) not in used:
                file.unlink(missing_ok=True)


@dataclass
class Result:
    """Exit code and output of a run of the command line."""

    code: int
    out: str
    err: str


@pytest.fixture
def haloscope(capsys, monkeypatch, tmp_path):
    """Return a function that runs `haloscope LINE WORDS...` in an empty folder and returns exit code and output.

    Spaces of the line separate its words.
    """
    from haloscope import cli

    monkeypatch.chdir(tmp_path)

    def run(line: str = "", *words) -> Result:
        capsys.readouterr()
        code = cli.main([*line.split(), *map(str, words)])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def measure(haloscope):
    """Return a function that runs `haloscope run LINE WORDS...`, which must succeed, and returns its records."""
    from haloscope import records

    def run(line: str, *words) -> list[dict]:
        result = haloscope(f"run {line}", *words, "--output", "r.jsonl")
        assert result.code == 0, result.err
        found = records.read("r.jsonl")
        assert not found.bad_lines
        return found.records

    return run


@pytest.fixture(scope="session")
def toy():
    """Return the profile made by hand: round numbers, no contention, segments that break at 8192 bytes."""
    from haloscope.model import profile
    from toy import TOY

    return profile.load(TOY)


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    """Return an installed tree made from the build under test, the only part that another project sees."""
    from haloscope.bridge import build
    from programs import run

    place = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", build.library().parent, "--prefix", place)
    return place


@pytest.fixture(scope="session")
def calibrated_device(pytestconfig, tmp_path_factory) -> Path:
    """Return a profile with the imitated device, as `haloscope calibrate` makes it, once for all pytest processes."""
    from haloscope import bridge, cli

    own = tmp_path_factory.getbasetemp()
    file = (own.parent if hasattr(pytestconfig, "workerinput") else own) / "gpu.json"
    apps = [name for name in ("laplace2d", "hydro3d") if name in bridge.app_names()]
    line = f"calibrate --quick --device host --launches 1 --sections network,device --ranks 2 --apps {','.join(apps)}"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert file.exists() or cli.main([*line.split(), "-o", str(file)]) == 0
    return file


@pytest.fixture
def imitated(monkeypatch):
    """Return a function that sets the devices that back end `host` imitates, as in `devices=2`."""
    return lambda text: monkeypatch.setenv("HALOSCOPE_HOST_DEVICE", text)


@pytest.fixture
def slow_streams(monkeypatch):
    """Return a function that makes every stream sleep up to N microseconds before each piece of its work."""
    from haloscope.bridge import build

    def slow(most_us: float) -> None:
        monkeypatch.setattr(build, "_own_program", build.rank_program().parent / "tests" / "rank_with_faults")
        monkeypatch.setenv("HALOSCOPE_TEST_DEVICE", f"delay_us={most_us}")

    return slow
