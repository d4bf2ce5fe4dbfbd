"""The C++ tests under Address-, UndefinedBehavior- and ThreadSanitizer. Long: each preset is built from scratch."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv" / "bin"
TOOLS = os.pathsep.join([os.environ["PATH"], str(VENV)])

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


def build(preset: str, *targets: str) -> Path:
    """Configure and build `targets` of a preset; returns the directory of the test programs."""
    cmake = VENV / "cmake"
    directory = ROOT / "build" / preset
    environment = {**os.environ, "PATH": TOOLS}
    configure = [cmake, "--preset", preset, f"-DCMAKE_MAKE_PROGRAM={VENV / 'ninja'}"]
    subprocess.run(configure, cwd=ROOT, check=True, env=environment)
    subprocess.run([cmake, "--build", directory, "--target", *targets], cwd=ROOT, check=True, env=environment)
    return directory / "tests" / "cpp"


def run(command: list, **environment: str) -> str:
    """Run a test program; its output, which must not hold a sanitizer's report."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, "PATH": TOOLS, "HALOSCOPE_LONG": "0", **environment},  # samples: all takes hours
        check=False,
        capture_output=True,
        text=True,
        timeout=3000,
    )
    output = done.stdout + done.stderr
    assert "Sanitizer" not in output and "runtime error" not in output, output[-4000:]
    assert done.returncode == 0, output[-4000:]
    return output


def test_address_and_undefined_behaviour_sanitizers_are_silent():
    programs = build("asan", "test_core", "test_kernels", "test_device", "test_threads", "test_mpi")
    for name in ("test_core", "test_kernels", "test_device", "test_threads"):
        run([programs / name], UBSAN_OPTIONS="print_stacktrace=1")
    # MPI libraries keep memory until the end of the process; leaks are looked for in the programs without MPI above.
    for ranks in (1, 2):
        run(["mpiexec", "-n", ranks, programs / "test_mpi"], ASAN_OPTIONS="detect_leaks=0")


def test_thread_sanitizer_is_silent_and_can_speak():
    if not shutil.which("clang++-19"):
        pytest.skip("needs clang++-19 with libomp-19-dev: gcc's ThreadSanitizer reports false races in libgomp")
    archer = Path("/usr/lib/llvm-19/lib/libarcher.so")
    programs = build("tsan", "test_threads", "test_device")
    options = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1", "OMP_TOOL_LIBRARIES": str(archer)}
    # Silent as they are; a program whose outer sweep does not wait for the halo, a stream that does not wait for
    # another, and blocks that write the same cells must be reported.
    for name in ("test_threads", "test_device"):
        run([programs / name], **options)
    run(
        [programs / "test_device"], HALOSCOPE_HOST_DEVICE="threads=3", **options
    )  # blocks of a launch beside each other
    for name, race in (
        ("test_threads", "RunnerRace.*"),
        ("test_device", "StreamRace.*"),
        ("test_device", "BlockRace.*"),
    ):
        broken = subprocess.run(
            [programs / name, f"--gtest_filter={race}"],
            env={**os.environ, **options, "HALOSCOPE_RUN_THE_RACE": "1"},
            check=False,
            capture_output=True,
            text=True,
        )
        assert "data race" in broken.stderr, f"ThreadSanitizer did not see {race}, a race put in on purpose"
