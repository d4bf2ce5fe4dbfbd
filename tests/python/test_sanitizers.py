"""The C++ tests under Address-, UndefinedBehavior- and ThreadSanitizer. Long: each preset is built from scratch."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench import gpu_cases

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv" / "bin"
ARCHER = "/usr/lib/llvm-19/lib/libarcher.so"
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
    programs = build("tsan", "test_threads", "test_device")
    # libomp knows only Archer, and copies by memcpy count as no access of ours with it: devices have no OpenMP threads.
    openmp = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1", "OMP_TOOL_LIBRARIES": ARCHER}
    # Silent as they are; a program whose outer sweep does not wait for the halo, a stream that does not wait for
    # another, and blocks that write the same cells must be reported.
    run([programs / "test_threads"], **openmp)
    run([programs / "test_device"])
    run([programs / "test_device"], HALOSCOPE_HOST_DEVICE="threads=3")  # blocks of a launch beside each other
    races = (
        ("test_threads", "RunnerRace.*", openmp),
        ("test_device", "StreamRace.*", {}),
        ("test_device", "BlockRace.*", {}),
    )
    for name, race, options in races:
        broken = subprocess.run(
            [programs / name, f"--gtest_filter={race}"],
            env={**os.environ, **options, "HALOSCOPE_RUN_THE_RACE": "1"},
            check=False,
            capture_output=True,
            text=True,
        )
        assert "data race" in broken.stderr, f"ThreadSanitizer did not see {race}, a race put in on purpose"


def test_thread_sanitizer_is_silent_where_ranks_have_devices(tmp_path):
    if not shutil.which("clang++-19"):
        pytest.skip("needs clang++-19 with libomp-19-dev: gcc's ThreadSanitizer reports false races in libgomp")
    program = build("tsan", "haloscope-rank").parent.parent / "haloscope-rank"
    delays = "delay_us=20,threads=2"
    for ranks in (1, 2, 3):
        lines = [f"{line} --device host" for line in gpu_cases.verification(ranks, aware=True)[::7]]
        (tmp_path / "lines").write_text("\n".join(lines))
        run(["mpiexec", "-n", ranks, program, "--configs", tmp_path / "lines", "--output", tmp_path / f"{ranks}.jsonl"],
            HALOSCOPE_HOST_DEVICE=delays, OMP_TOOL_LIBRARIES=ARCHER)  # fmt: skip
        found = [json.loads(line) for line in (tmp_path / f"{ranks}.jsonl").read_text().splitlines()]
        assert [r["verification"]["status"] for r in found] == ["passed"] * len(lines)
