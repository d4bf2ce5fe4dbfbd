"""Shared by all tests: markers, the command line as a function, and checklist ids carried into the JUnit report."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parent.parent
os.environ["HALOSCOPE_BUILD"] = str(Path(os.environ.get("HALOSCOPE_BUILD", ROOT / "build" / "release")).resolve())

# Tests run more ranks and threads than there are cores, where one that spins keeps another from what it waits for: ten
# times slower. So threads sleep while they wait, and MPICH's collectives stay with those that let others run.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD", "1000000000")
os.environ["HALOSCOPE_TRACE"] = "1"  # a fault of the command line itself is an exception
os.environ["HALOSCOPE_CACHE"] = ""  # no choices of earlier programs, and none for later ones


def pytest_configure(config):
    """Declare the markers."""
    config.addinivalue_line("markers", "ids(*names): rows of the studies' checklists that the test shows to hold")
    config.addinivalue_line("markers", "card: runs on a GPU, so that its rows count as shown on a card")
    config.addinivalue_line("markers", "long: slow; part of `make check-long` only")


def pytest_collection_modifyitems(items):
    """Write each test's checklist ids into the JUnit report, from which docs/coverage.md is made."""
    for item in items:
        ids = [name for mark in item.iter_markers("ids") for name in mark.args]
        if ids:
            item.user_properties.append(("ids", " ".join(ids)))
        if item.get_closest_marker("card"):
            item.user_properties.append(("device", "card"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Write into the JUnit report on how many ranks a test started programs."""
    import haloscope.measure.answers  # noqa: F401 (keeps the function itself, or asking for --info would count)
    from haloscope.measure import launch

    started, words = set(), launch.launcher_words

    def noted(path, ranks, threads):
        started.add(ranks)
        return words(path, ranks, threads)

    try:
        with mock.patch.object(launch, "launcher_words", noted):
            return (yield)
    finally:
        if started:
            item.user_properties.append(("ranks", " ".join(map(str, sorted(started)))))


def segments() -> set[Path]:
    """Return the files of MPI libraries in shared memory."""
    from haloscope.measure.checkup import process_view

    return {file for pattern in process_view.SEGMENTS for file in process_view.SHARED_MEMORY.glob(pattern)}


@pytest.fixture(autouse=True)
def no_segments_of_killed_jobs():
    """Removes what jobs that were killed leave in shared memory: MPICH's files alone fill it in a long run."""
    from haloscope.measure.checkup import process_view

    before = segments()
    yield
    if left := segments() - before:
        used = process_view.mapped_files(process_view.SHARED_MEMORY)
        for file in left:
            if str(file) not in used:
                file.unlink(missing_ok=True)


@dataclass
class Result:
    """What a run of the command line gave."""

    code: int
    out: str
    err: str


@pytest.fixture
def haloscope(capsys, monkeypatch, tmp_path):
    """Return a function that runs `haloscope WORDS...` in an empty folder and returns exit code and output."""
    from haloscope import cli

    monkeypatch.chdir(tmp_path)

    def run(*words) -> Result:
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def toy():
    """Return the profile made by hand: round numbers, no contention, segments that break at 8192 bytes."""
    from haloscope.model import profile
    from toy import TOY

    return profile.load(TOY)


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    """Return an installed tree made from the build under test, which is all that another project knows."""
    from haloscope.core import build

    place = tmp_path_factory.mktemp("prefix")
    tools = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)])
    words = [shutil.which("cmake", path=tools) or "cmake", "--install", build.library().parent, "--prefix", place]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return place


@pytest.fixture(scope="session")
def calibrated_device(tmp_path_factory) -> Path:
    """Return a profile with the imitated device, as `haloscope calibrate` makes it."""
    from haloscope import cli

    file = tmp_path_factory.mktemp("card") / "card.json"
    words = ("calibrate", "-o", str(file), "--quick", "--device", "host", "--launches", "1", "--sections", "network,device",
             "--ranks", "2", "--apps", "laplace2d,laplace3d,advection3d,hydro3d")  # fmt: skip
    assert cli.main(list(words)) == 0
    return file


@pytest.fixture
def imitated(monkeypatch):
    """Return a function that says what back end `host` imitates, as in `devices=2`."""
    return lambda text: monkeypatch.setenv("HALOSCOPE_HOST_DEVICE", text)


@pytest.fixture
def slow_streams(monkeypatch):
    """Return a function that has every stream sleep up to so many microseconds before each piece of its work."""
    from haloscope.core import build

    def slow(most_us: float) -> None:
        monkeypatch.setattr(build, "_own_program", build.rank_program().parent / "tests" / "cpp" / "rank_with_faults")
        monkeypatch.setenv("HALOSCOPE_TEST_DEVICE", f"delay_us={most_us}")

    return slow
