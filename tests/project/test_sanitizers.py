"""Address-, UndefinedBehavior- and ThreadSanitizer. Each preset is built from scratch, so all are long."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench import gpu_cases
from haloscope.measure import launch
from long_run import LONG
from paths import ROOT
from programs import TOOLS, ended

VENV = ROOT / ".venv" / "bin"

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

# UCX watches memory by hooks that run where a thread ends, too late for gcc's ThreadSanitizer, and tries out reading
# another process's memory by a call with arguments that it does not survive (once in a few starts).
NO_HOOKS = {"UCX_MEM_MMAP_HOOK_MODE": "none", "UCX_TLS": "^cma"}


def expect_race(program: list, name: str, **environment: str) -> None:
    """Run a test that races on purpose, which ThreadSanitizer must report."""
    variables = os.environ | environment | {"HALOSCOPE_RUN_THE_RACE": "1"}
    done = ended(*program, f"--gtest_filter={name}", env=variables)
    assert "data race" in done.stderr, f"ThreadSanitizer did not see {name}, a race put in on purpose"


def build(preset: str, *targets: str) -> Path:
    """Configure and build `targets` of a preset, for one test at a time; returns its directory."""
    cmake = VENV / "cmake"
    directory = ROOT / "build" / preset
    directory.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PATH": TOOLS}
    configure = [cmake, "--preset", preset, f"-DCMAKE_MAKE_PROGRAM={VENV / 'ninja'}"]
    with (directory / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(configure, cwd=ROOT, check=True, env=environment)
        subprocess.run([cmake, "--build", directory, "--target", *targets], cwd=ROOT, check=True, env=environment)
    return directory


def run(command: list, **environment: str) -> str:
    """Run a test program; its output, which must not hold a sanitizer's report."""
    variables = os.environ | {"PATH": TOOLS, "HALOSCOPE_LONG": "0"} | environment  # samples: all takes hours
    done = ended(*command, env=variables, timeout=3000)
    output = done.stdout + done.stderr
    assert "Sanitizer" not in output and "runtime error" not in output, output[-4000:]
    assert done.returncode == 0, output[-4000:]
    return output


def test_address_and_undefined_behaviour_sanitizers_are_silent():
    targets = ("test_core", "test_kernels", "test_device", "test_threads", "test_mpi")
    programs = build("asan", *targets) / "tests"
    for name in ("test_core", "test_kernels", "test_device", "test_threads"):
        run([programs / name], UBSAN_OPTIONS="print_stacktrace=1")
    # MPI libraries keep memory until the end of the process; leaks are looked for in the programs without MPI above.
    for ranks in (1, 2):
        run(["mpiexec", "-n", ranks, programs / "test_mpi"], ASAN_OPTIONS="detect_leaks=0")


@pytest.fixture(scope="module")
def threaded() -> Path:
    """The build that ThreadSanitizer looks at where threads are OpenMP's or the program's own."""
    if not shutil.which("clang++-19"):
        pytest.skip("needs clang++-19 with libomp-19-dev: gcc's ThreadSanitizer reports false races in libgomp")
    return build("tsan", "test_threads", "test_mpi", "late_ranks_haloscope") / "tests"


# MPI itself is not instrumented; Archer shows what OpenMP orders.
OF_CLANG = {
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
    "OMP_TOOL_LIBRARIES": "/usr/lib/llvm-19/lib/libarcher.so",
}


def test_thread_sanitizer_is_silent_on_teams_and_can_speak(threaded):
    run([threaded / "test_threads"], **OF_CLANG)
    # An outer sweep that does not wait for the halo:
    expect_race([threaded / "test_threads"], "RunnerRace.*", **OF_CLANG)


@pytest.mark.parametrize("suite", ["ExchangeByThreads", "PartitionedByThreads"])
def test_thread_sanitizer_is_silent_on_threads_that_call_mpi(threaded, suite):
    start = launch.launcher_words(launch.mpiexec(), 2, 1)
    run([*start, threaded / "test_mpi", f"--gtest_filter={suite}.*"], **OF_CLANG)


@pytest.mark.parametrize("how", ["boxes", "reorder", "blocking", "nonblocking", "gather"])
def test_thread_sanitizer_is_silent_on_reports_of_waits(threaded, how):
    start = launch.launcher_words(launch.mpiexec(), 2, 1)
    output = run([*start, threaded / "late_ranks_haloscope", how, 2], HALOSCOPE_PATIENCE="0.2", **OF_CLANG)
    assert "rank 0 has waited" in output


@pytest.fixture(scope="module")
def fixed_addresses(tmp_path_factory) -> list[str]:
    """Words to put before a program: nothing, or what keeps its memory where gcc's older ThreadSanitizers expect it."""
    source = tmp_path_factory.mktemp("tsan") / "empty.cpp"
    source.write_text("int main() {}")
    words = ["c++", "-fsanitize=thread", str(source), "-o", str(source.with_suffix(""))]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("needs a compiler with ThreadSanitizer, as g++ with libtsan")
    for before in ([], ["setarch", "-R"]):
        with contextlib.suppress(FileNotFoundError):
            if not subprocess.run([*before, words[-1]], check=False, capture_output=True).returncode:
                return before
    pytest.skip("ThreadSanitizer does not run here: its memory is taken")


@pytest.fixture(scope="module")
def on_devices(fixed_addresses) -> Path:
    """The build that ThreadSanitizer looks at where fields lie on a device."""
    return build("tsan-devices", "test_device", "test_device_calls")


@pytest.fixture(scope="module")
def ranks_on_devices(fixed_addresses) -> Path:
    """The same with the program of ranks, which takes as long to build again."""
    return build("tsan-devices", "rank_with_faults")


@pytest.mark.ids("W19")
def test_thread_sanitizer_is_silent_on_streams_and_kernels_and_can_speak(on_devices, fixed_addresses):
    program = [*fixed_addresses, on_devices / "tests" / "test_device"]
    run(program, HALOSCOPE_TEST_DEVICE="threads=3", **NO_HOOKS)  # blocks of a launch beside each other
    expect_race(program, "StreamRace.*", **NO_HOOKS)  # a stream that does not wait for another
    expect_race(program, "BlockRace.*", **NO_HOOKS)  # blocks that write the same cells
    expect_race(program, "WordRace.*", **NO_HOOKS)  # a CPU that reads what no word has announced


def recorded(
    lines: list[dict], ranks: int, program: list, folder: Path, imitation: str, **environment: str
) -> list[dict]:
    """Records of requests that ThreadSanitizer has looked at, on devices with these delays. program: the build, and
    what to put before its program."""
    built, *before = program
    (folder / "lines").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["--requests", folder / "lines", "--output", folder / "r.jsonl"]
    start = launch.launcher_words(launch.mpiexec(built), ranks, 1)
    run(
        [*start, *before, built / "tests" / "rank_with_faults", *words],
        HALOSCOPE_TEST_DEVICE=imitation,
        **NO_HOOKS,
        **environment,
    )
    return [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]


@pytest.mark.ids("W19")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_thread_sanitizer_is_silent_on_schedules_of_devices(ranks_on_devices, fixed_addresses, tmp_path, ranks):
    of_schedule: dict[str, list[dict]] = {}
    for request in gpu_cases.verification(ranks, aware=True):
        of_schedule.setdefault(request["schedule"], []).append(gpu_cases.line(request, ranks, "host"))
    assert len(of_schedule) >= 6
    lines = [line for same in of_schedule.values() for line in same[:: 3 if LONG else 17]]
    found = recorded(lines, ranks, [ranks_on_devices, *fixed_addresses], tmp_path, "delay_us=20,threads=2")
    assert [r["verification"]["status"] for r in found] == ["passed"] * len(lines)


def test_thread_sanitizer_is_silent_on_fields_of_users_and_their_streams(on_devices, fixed_addresses):
    start = launch.launcher_words(launch.mpiexec(on_devices), 2, 1)
    program = [*start, *fixed_addresses, on_devices / "tests" / "test_device_calls"]
    names = "*" if LONG else "DeviceExchange.Streams*:DeviceExchange.Memory*:DeviceStepper.Random*"
    run([*program, f"--gtest_filter={names}"], **NO_HOOKS)
