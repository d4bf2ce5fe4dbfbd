"""bench/gpu.py runs to its end on devices made of the CPU."""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from haloscope import guests, records
from haloscope.bridge import build
from haloscope.measure import answers, launch
from paths import ROOT
from programs import executable, run

sys.path.insert(0, str(ROOT / "bench"))  # where gpu.py finds its parts too

import gpu
import gpu_build
import gpu_cases
import gpu_ranks
import gpu_run
import gpu_table


def environment() -> dict[str, str]:
    """With the MPI that the rank program was built with on PATH."""
    mpi = Path(launch.mpiexec(build.rank_program().parent)).parent
    return os.environ | {"PATH": f"{mpi}:{os.environ['PATH']}"}


def command(*words: str | Path, built: Path | None = None, device: str = "host") -> list[str]:
    """The command line of a run."""
    built = built or build.rank_program().parent
    return [sys.executable, str(ROOT / "bench" / "gpu.py"), "--device", device, "--build", str(built), *map(str, words)]


def ended(words: list[str]) -> subprocess.CompletedProcess:
    """A run to its end."""
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment(), timeout=250)


def lines_of(folder: Path, name: str) -> list[dict]:
    """The lines of a file of results."""
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


EVERY = "43"  # of the cases of which there are many


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What a run on the host back end printed, and the folder of its records."""
    folder = tmp_path_factory.mktemp("gpu")
    done = ended(command("--every", EVERY, "--output", folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder


def test_every_configuration_that_it_checks_is_right(measured):
    text, folder = measured
    records = lines_of(folder, "verified")
    assert len(records) > 15
    assert all(record["verification"]["status"] == "passed" for record in records)
    assert f"verified: {len(records)} good (of {len(records)})" in text


def test_its_table_shows_every_kernel_and_the_steps(measured):
    text, folder = measured
    kernels = lines_of(folder, "kernels")
    assert not [line for line in kernels if "error" in line]
    kind = "blocks" if guests.find_guests(guests.STUDIES) else "skipped"
    assert all(record["kind"] == kind for record in lines_of(folder, "blocks"))
    for form in ("laplace2d star", "laplace3d star", "advection3d dense", "advection3d separable"):
        assert f"| {form}" in text
    assert "| laplace3d star f32 | fused, 4 steps" in text
    assert "An imitated device" in text and "| laplace2d f32 128x128 |" in text
    assert "fused, 8 steps" in text and "pack, 6 faces" in text and "| steps | ranks |" in text
    bars = text[text.index("| bar | required | reached | holds |") :]
    for title in (
        "share of the copy's rate",
        "fused over one by one",
        "pack: share",
        "share of the exchange hidden",
        "plain over best",
        "exchange, staged over staged:stream",
    ):
        assert title in bars
    assert (folder / "table.md").read_text().splitlines()[0] in text


# ---- a run that cannot be lost ---------------------------------------------------------------------------------------

# In place of the programs of a build: a third of all cases ends by a signal, after those before it.
CRASHING = """#!{python} -SE
import json, os, signal, subprocess, sys, zlib
real, words = {real!r}, sys.argv[1:]
crashes = lambda name: zlib.crc32(name.encode()) % 3 == 0 and "cells=64x64" not in name
if "--case" in words and crashes(words[words.index("--case") + 1]):
    os.kill(os.getpid(), signal.SIGSEGV)
if "--requests" in words:
    at = words.index("--requests") + 1
    asked = open(words[at]).read().splitlines()
    bad = [n for n, line in enumerate(asked) if crashes(json.loads(line)["id"])]
    if bad:
        words[at] += "." + str(os.getpid())
        open(words[at], "w").write("".join(line + "\\n" for line in asked[:bad[0]]))
        if bad[0]:
            subprocess.run([real, *words], close_fds=False)  # the launcher speaks by one of them
        os.kill(os.getpid(), signal.SIGSEGV)
os.execv(real, [real, *words])
"""


def crashes(name: str) -> bool:
    """As the programs above have it."""
    return zlib.crc32(name.encode()) % 3 == 0


def crashing_build(folder: Path) -> Path:
    """A folder with such programs."""
    built = build.rank_program().parent
    (folder / "bench").mkdir()
    for name in ("haloscope-rank", "bench/bench_gpu"):
        (folder / name).write_text(CRASHING.format(python=sys.executable, real=str(built / name)))
        (folder / name).chmod(0o755)
    return folder


def kill_when(words: list[str], file: Path, lines: int, how: signal.Signals) -> int:
    """Start a run and end it by a signal once a file of its results has `lines` lines; its code."""
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as run:
        while run.poll() is None and not (file.exists() and file.read_bytes().count(b"\n") >= lines):
            time.sleep(0.01)
        run.send_signal(how)
        return run.wait(60)


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param(("--stage", "smoke", "--every", "9"), id="smoke"),
        pytest.param(("--every", EVERY), id="all", marks=pytest.mark.long),
    ],
)
def test_crashes_cost_their_own_cases_only_and_a_killed_run_goes_on(stages, tmp_path):
    clean = tmp_path / "clean"
    assert ended(command(*stages, "--output", clean)).returncode == 0
    (tmp_path / "build").mkdir()
    built, folder = crashing_build(tmp_path / "build"), tmp_path / "results"
    words = command(*stages, "--output", folder, "--resume", built=built)
    assert kill_when(words, folder / "kernels.jsonl", 9, signal.SIGKILL) == -signal.SIGKILL
    with (folder / "kernels.jsonl").open("a") as file:
        file.write('{"case": "half a li')  # as a full disk or a lost machine leaves it
    assert kill_when(words, folder / "verified.jsonl", 3, signal.SIGKILL) == -signal.SIGKILL
    done = ended(words)
    assert done.returncode == 1 and "ended by signal SIGSEGV" in done.stdout
    for name in (file.stem for file in clean.glob("*.jsonl")):
        key = "case" if name in ("kernels", "checks") else "id"
        whole, found = lines_of(clean, name), lines_of(folder, name)
        assert sorted(line[key] for line in found) == sorted(line[key] for line in whole), name  # each once
        failed = {line[key] for line in found if gpu_run.outcome(line) == "failed"}
        assert failed == {line[key] for line in whole if name != "checks" and crashes(line[key])}, name
    again = ended(words)
    assert again.returncode == 1 and len(lines_of(folder, "kernels")) == len(lines_of(clean, "kernels"))


def test_what_failed_is_run_again_when_asked_and_results_are_not_overwritten(measured, tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    kernels = lines_of(measured[1], "kernels")
    name = kernels[1]["case"]
    kept = [line if line["case"] != name else {"case": name, "error": "ended by signal SIGSEGV"} for line in kernels]
    (folder / "kernels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    words = command("--stage", "smoke", "--every", EVERY, "--minutes", "0.4")
    refused = ended([*words, "--output", str(folder)])
    assert refused.returncode == 2 and "--resume" in refused.stderr
    other = tmp_path / "other"
    ended([*words, "--output", str(other), "--resume", str(folder), "--retry"])
    assert gpu_run.outcome(lines_of(other, "kernels")[-1]) == "good"
    assert len(lines_of(other, "kernels")) == len(kernels)


# Runs a program that is asked to end while it starts its second process, one that lasts: Popen has not returned yet.
ENDED_AT_A_START = """
import os, runpy, signal, subprocess, sys
start, started = subprocess.Popen, []
def start_and_end(words, **how):
    started.append(start(words if not started else ["sleep", "60"], **how))
    if len(started) == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    return started[-1]
subprocess.Popen = start_and_end
sys.argv.pop(0)
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def is_running(mark: str) -> bool:
    """Return whether a process has `NAME=VALUE` in its environment."""
    return any(mark.encode() in read_or_nothing(file) for file in Path("/proc").glob("[0-9]*/environ"))


def test_a_run_that_is_asked_to_end_leaves_no_process_behind(tmp_path):
    code = kill_when(command("--output", tmp_path), tmp_path / "kernels.jsonl", 3, signal.SIGTERM)
    assert code == 143
    assert not is_running(f"{gpu_run.MARK}={tmp_path}")


def test_a_run_that_is_asked_to_end_while_a_process_starts_ends_it(tmp_path):
    python, *words = command("--output", tmp_path)
    done = ended([python, "-c", ENDED_AT_A_START, *words])
    assert done.returncode == 143, done.stderr
    assert not is_running(f"{gpu_run.MARK}={tmp_path}")


def read_or_nothing(path: Path) -> bytes:
    """Of a process that may have ended meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_device_or_driver_that_does_not_work_is_said_at_once(tmp_path):
    done = ended(command("--output", tmp_path, device="cuda"))
    if "device:" in done.stdout:
        pytest.skip("there is a card here")
    assert done.returncode == 3 and "the device does not work: ended with code 3" in done.stdout
    assert not (tmp_path / "kernels.jsonl").exists()


def test_a_run_whose_time_is_up_keeps_what_it_has_and_calls_nothing_failed(tmp_path):
    done = ended(command("--minutes", "0.05", "--output", tmp_path))
    assert done.returncode == 1 and "--resume continues with the missing ones" in done.stdout, done.stdout + done.stderr
    assert lines_of(tmp_path, "kernels")[0]["case"] == "device" and (tmp_path / "table.md").exists()
    for file in tmp_path.glob("*.jsonl"):
        assert {gpu_run.outcome(line) for line in lines_of(tmp_path, file.stem)} <= {"good"}, file.stem


def test_what_others_say_between_lines_of_json_is_left_out():
    assert gpu_run.Ended(0, 'a warning\n{"case": "a"}\n\n{"case": "b"}\n').lines() == [{"case": "a"}, {"case": "b"}]


@pytest.mark.parametrize(
    ("driver", "output", "builds"),
    [
        (True, "driver version is insufficient", True),
        (False, "driver version is insufficient", False),
        (True, "no device", False),
    ],
)
def test_only_an_older_driver_makes_it_build_again(driver, output, builds, tmp_path, monkeypatch):
    for program in ["nvcc"] + ["nvidia-smi"] * driver:
        executable(tmp_path / program, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_build.is_too_old(output) == builds


def test_a_program_is_ended_with_all_that_it_started(tmp_path):
    begin = time.monotonic()
    ended = gpu_run.run(["sh", "-c", "setsid sleep 1000 & sleep 1000 & echo started; wait"], 0.3, {}, tmp_path)
    assert ended.code is None and "started" in ended.reason() and time.monotonic() - begin < 20
    assert not is_running(f"{gpu_run.MARK}={tmp_path}")


def test_a_refusal_is_not_a_wrong_result():
    assert gpu_run.outcome({"kind": "skipped", "reason": "no ipc here"}, verified=True) == "refused"
    assert gpu_run.outcome({"kind": "measurement", "verification": {"status": "failed"}}) == "wrong"
    assert gpu_run.outcome({"kind": "measurement", "verification": {"status": "skipped"}}, verified=True) == "wrong"
    assert gpu_run.outcome({"kind": "failed", "reason": "signal"}) == gpu_run.outcome({"error": "signal"}) == "failed"


def test_ways_take_turns_and_one_that_never_works_is_left_alone(tmp_path):
    lines = [{"id": f"{s}{n}", "request": {"strategy": s}} for s in ("ipc", "staged") for n in range(4)]
    assert [line["id"] for line in gpu_cases.in_turn(lines)][:4] == ["ipc0", "staged0", "ipc1", "staged1"]
    journal = gpu_run.Journal(tmp_path / "journal", "id")
    for line in lines[:3]:
        assert not gpu_ranks.given_up(journal)
        journal.append(line | {"kind": "failed"})
    journal.append(lines[4] | {"kind": "failed"})
    assert gpu_ranks.given_up(journal) == {"ipc"}
    journal.append(lines[3] | {"kind": "measurement"})
    assert not gpu_ranks.given_up(journal)


# ---- in place of programs that are not here --------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Make a shell script of a name, which comes first on PATH; return its path."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return lambda name, script: executable(folder / name, script)


def share_device(kernels: str | Path, folder: Path) -> gpu_ranks.SharedDevice:
    """A started daemon of MPS, for a program that uses the device."""
    programs = gpu_ranks.Programs(Path(kernels), None, "mpiexec")
    log, deadline = gpu_run.Log(folder / "log"), gpu_run.Deadline(100)
    shared = gpu_ranks.SharedDevice(programs, "cuda", log, deadline, folder)
    shared.start()
    return shared


def test_ranks_share_a_card_by_a_daemon_that_ends_with_the_run(tools, tmp_path):
    commands = tmp_path / "commands"
    tools("nvidia-cuda-mps-control", f'if [ "$1" = -d ]; then echo started; else cat; fi >> {commands}')
    shared = share_device("/bin/true", tmp_path)
    folder = Path(shared.environment["CUDA_MPS_PIPE_DIRECTORY"])
    assert folder.exists() and commands.read_text() == "started\n"
    shared.end()
    assert not shared.environment and not folder.exists() and commands.read_text() == "started\nquit\n"
    shared.end()  # again
    assert commands.read_text() == "started\nquit\n"
    assert not share_device("/bin/false", tmp_path).environment  # under the daemon nothing runs


@pytest.mark.parametrize("starts", ["exec sleep 1000", "exit 1", "setsid sleep 1000 & exit 0"])
def test_a_daemon_that_hangs_or_fails_costs_its_patience_only_and_leaves_nothing(starts, tools, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_ranks, "DAEMON_S", 0.3)
    monkeypatch.setattr(gpu_ranks, "QUITTING_S", 0.3)
    seen = tmp_path / "seen"
    control = tools(
        "nvidia-cuda-mps-control",
        f'echo "$CUDA_MPS_PIPE_DIRECTORY" > {seen}\nif [ "$1" = -d ]; then {starts}; fi\nexec sleep 1000',
    )
    shared = share_device("/bin/true", tmp_path)
    assert bool(shared.environment) == ("setsid" in starts)
    shared.end()
    assert "MPS: " in (tmp_path / "log").read_text()
    assert not is_running(f"CUDA_MPS_PIPE_DIRECTORY={seen.read_text().strip()}")
    control.write_text("#!/nowhere\n")
    assert not share_device("/bin/true", tmp_path).environment


def test_a_daemon_that_a_case_has_spoilt_is_replaced_and_given_up_after_several(tools, tmp_path):
    tools("nvidia-cuda-mps-control", 'if [ "$1" = -d ]; then touch "$CUDA_MPS_PIPE_DIRECTORY/serves"; fi')
    kernels = tools("kernels", 'test -z "$CUDA_MPS_PIPE_DIRECTORY" || test -e "$CUDA_MPS_PIPE_DIRECTORY/serves"')
    shared = share_device(kernels, tmp_path)
    first = shared.environment
    shared.mend()
    assert shared.environment == first  # a case that failed by itself
    for _ in range(gpu_ranks.REPLACED):
        before = shared.environment
        (Path(before["CUDA_MPS_PIPE_DIRECTORY"]) / "serves").unlink()
        shared.mend()
        assert shared.environment and shared.environment != before and shared.serves()
    (Path(shared.environment["CUDA_MPS_PIPE_DIRECTORY"]) / "serves").unlink()
    shared.mend()
    assert not shared.environment and "take turns from now on" in (tmp_path / "log").read_text()


def ranks_of(tools, folder: Path, rank: str, seconds: float = 100) -> gpu_ranks.Ranks:
    """What starts a script as the rank program, once."""
    mpiexec, program = tools("mpiexec", 'shift 2; exec "$@"'), tools("rank", rank)
    programs = gpu_ranks.Programs(Path("/bin/true"), program, str(mpiexec))
    return gpu_ranks.Ranks(programs, "cuda", gpu_run.Log(folder / "log"), gpu_run.Deadline(seconds), folder)


@pytest.mark.parametrize(
    ("code", "message", "outcome"),
    [
        (0, "ERROR SUMMARY: 0 errors", "good"),
        (3, "no ipc here", "refused"),
        (77, "Invalid __global__ read", "failed"),
        (79, "ERROR SUMMARY: 2 errors", "failed"),
        (1, "no such driver", "failed"),
    ],
)
def test_a_fault_of_memory_is_told_from_a_configuration_that_is_refused(code, message, outcome, tools, tmp_path):
    tools("compute-sanitizer", f'echo "========= {message}"; exit {code}')
    found = ranks_of(tools, tmp_path, "exit 0").memory_faults([])
    assert gpu_run.outcome(found) == outcome
    assert ("faults of memory" in found.get("error", "")) == (code in (77, 79))


@contextlib.contextmanager
def session_in(folder: Path) -> Iterator[gpu.Session]:
    """A session on a card, with its results in a folder."""
    options = argparse.Namespace(device="cuda", small=False, retry=False)
    with contextlib.ExitStack() as stack:
        yield gpu.Session(options, folder, gpu_run.Log(folder / "log"), gpu_run.Deadline(100), stack)


@pytest.mark.parametrize(("code", "outcome"), [(0, "good"), (3, "refused"), (1, "failed"), (139, "failed")])
def test_tests_that_were_carried_along_run_once(code, outcome, tools, tmp_path):
    test = tools("test_device", f"echo ran >> {tmp_path}/ran; exit {code}")
    with session_in(tmp_path) as session:
        session.programs = gpu_ranks.Programs(Path("/bin/true"), None, "mpiexec", tests=test)
        session.tests()
        session.tests()
    assert (tmp_path / "ran").read_text() == "ran\n"
    assert [gpu_run.outcome(line) for line in lines_of(tmp_path, "checks")] == [outcome]


def test_the_state_of_the_card_is_kept_for_each_stage(tools, tmp_path):
    tools("nvidia-smi", f"echo '{', '.join(str(n) for n in range(len(gpu.CARD)))}'")
    with session_in(tmp_path) as session:
        session.look_at_the_card("smoke")
    (line,) = lines_of(tmp_path, "checks")
    assert line["case"] == "card before smoke" and line["state"]["driver_version"] == "1"


def test_memory_faults_are_looked_for_outside_of_mps(tools, tmp_path):
    tools("compute-sanitizer", 'test -z "$CUDA_MPS_PIPE_DIRECTORY"')
    ranks = ranks_of(tools, tmp_path, "exit 0")
    ranks.shared.environment = {"CUDA_MPS_PIPE_DIRECTORY": "there"}
    assert ranks.memory_faults([]) == {"found": "no fault"}


def test_an_answer_that_the_deadline_cuts_off_is_none(tools, tmp_path):
    tools("compute-sanitizer", "exec sleep 1000")
    ranks = ranks_of(tools, tmp_path, "exec sleep 1000", seconds=0.3)
    assert ranks.memory_faults([]) is None and ranks.aware() is None
    assert ranks_of(tools, tmp_path, 'echo "{\\"ok\\": true}"').aware() is True
    assert ranks_of(tools, tmp_path, "exit 1").aware() is False


@pytest.mark.parametrize("fails", ["bench_gpu", "haloscope-rank"])
def test_a_build_that_fails_shows_its_last_lines_and_keeps_all(fails, tools, tmp_path, monkeypatch, capsys):
    cmake = tools("cmake", f'case "$*" in *{fails}) seq -f "line %g" 100; exit 1;; esac')
    monkeypatch.setattr(gpu_build, "find_tool", lambda name: str(cmake))
    log, deadline = gpu_run.Log(tmp_path / "log"), gpu_run.Deadline(100)
    if fails == "bench_gpu":
        with pytest.raises(gpu_run.Trouble, match="building the kernels failed"):
            gpu_build.build("host", log, deadline, tmp_path)
    else:
        programs = gpu_build.build("host", log, deadline, tmp_path)
        assert "rank" not in log.path.read_text()  # kernels can be measured before
        gpu_build.finish_build(programs, log, deadline, tmp_path)
        assert programs.rank is None and "only kernels can be measured" in log.path.read_text()
    shown = capsys.readouterr().err.splitlines()
    assert shown[-1] == "line 100" and "line 1" not in shown
    assert "line 1\n" in log.path.read_text()


@pytest.mark.parametrize("supported", [True, False])
def test_code_is_compressed_where_the_compiler_can(supported, tools):
    tools("nvcc", "echo '--compress-mode [default,size]'" if supported else "exit 0")
    assert gpu_build.compressed() == ["-DCMAKE_CUDA_FLAGS=--compress-mode=size"] * supported


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_what_is_built_where_it_runs_has_the_kernels_first_and_then_two_ranks_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", environment()["PATH"])
    log, deadline = gpu_run.Log(tmp_path / "log"), gpu_run.Deadline(2900)
    programs = gpu_build.build("host", log, deadline, tmp_path)
    assert gpu_build.ask_device(programs.kernels, "host", tmp_path, deadline).code == 0 and programs.rank is None
    gpu_build.finish_build(programs, log, deadline, tmp_path)
    assert gpu_ranks.Ranks(programs, "host", log, deadline, tmp_path).try_out() == ""


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_a_carried_build_runs_where_it_is_put_with_its_own_mpi(tmp_path):
    device = "cuda" if Path(gpu_build.nvcc()).exists() else "host"
    gpu_build.carry(device, "90", tmp_path / "here")
    moved = (tmp_path / "here").rename(tmp_path / "there")
    for file in (moved / device).iterdir():
        file.chmod(0o644)  # as some copies leave it
    programs = gpu_build.carried_programs(device, moved)
    library = subprocess.run(["ldd", programs.rank], capture_output=True, text=True, check=True).stdout
    assert str(moved / "mpi" / "lib") in str(Path(re.search(r"libmpi\.so\S* => (\S+)", library)[1]).resolve())
    mark = tmp_path / "results"
    deadline = gpu_run.Deadline(100)
    assert gpu_build.ask_device(programs.kernels, "host", mark, deadline).code == 0
    ranks = gpu_ranks.Ranks(programs, "host", gpu_run.Log(mark / "log"), deadline, mark)
    assert ranks.try_out() == ""
    assert programs.tests and programs.library


@pytest.mark.parametrize("ranks", [1, 2])
def test_deep_halos_and_graphs_are_checked_too(ranks, tmp_path):
    requests = [
        gpu_cases.line(request, ranks, "host") for request in gpu_cases.deep(("ordered/staged", "direct/ipc"), ranks)
    ]
    (tmp_path / "lines").write_text("".join(json.dumps(line) + "\n" for line in requests))
    words = ["--requests", str(tmp_path / "lines"), "--output", str(tmp_path / "r.jsonl"), "--launch-id", "one"]
    assert answers.quietly(ranks, words, 300)[0] == 0
    found = records.read(tmp_path / "r.jsonl").records
    assert [r["verification"]["status"] for r in found] == ["passed"] * len(requests)
    assert {r["request"]["depth"] for r in found} >= {16, 64}
    assert any(r["request"].get("capture") for r in found) == (ranks == 1)


def test_validate_can_read_the_steps_that_it_measures(measured):
    _, folder = measured
    file = records.read(folder / "steps.jsonl")
    assert file.records and not file.bad_lines
    assert len({(r["id"], r["launch"]["id"]) for r in file.records}) == len(file.records)


def test_it_takes_the_records_of_a_calibration_along(measured):
    _, folder = measured
    found = [r for r in records.read(folder / "calibration.jsonl").records if r["kind"] == "calibration"]
    assert found and all(r["verification"]["status"] != "failed" for r in found)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_every_request_is_possible_and_has_an_id_of_its_own(ranks):
    for requests in (gpu_cases.verification(ranks, aware=True), gpu_cases.halo_path(ranks, small=False, aware=True)):
        lines = [gpu_cases.line(request, ranks, "host") for request in requests]
        assert len({line["id"] for line in lines}) == len({json.dumps(line["request"]) for line in lines}) == len(lines)
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        found = run(build.rank_program(), "--check", "-", input=text).splitlines()
        assert [json.loads(answer) for answer in found] == [""] * len(lines)


# ---- its kernels -----------------------------------------------------------------------------------------------------


def bench_gpu(*words: str) -> subprocess.CompletedProcess:
    """The program of the kernels on an imitated device."""
    program = build.rank_program().parent / "bench" / "bench_gpu"
    return subprocess.run([program, "--small", "--device", "host", *words], capture_output=True, text=True, check=False)


def test_cases_of_kernels_are_listed_the_most_valuable_first_and_run_by_name(tmp_path):
    listed = [json.loads(line) for line in bench_gpu("--list").stdout.splitlines()]
    names = [line["case"] for line in listed]
    assert len(set(names)) == len(names)
    stages = [("smoke", "bars", "depth").index(line["stage"]) for line in listed]
    assert stages == sorted(stages) and set(stages) == {0, 1, 2}
    for real in ("f32", "f64"):
        assert {f"laplace{d}d-star-{real}/stream/default" for d in (2, 3)} < set(names)
    file = tmp_path / "lines"
    for name in (names[0], "overlap/laplace2d-star-f32"):
        assert bench_gpu("--case", name, "--output", str(file)).returncode == 0
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert first["case"] == names[0] and first["imitated"] and first["gb_per_s"] > 0 < first["copy_gb_per_s"]
    assert len(second["serial_seconds"]) == len(second["together_seconds"]) == len(second["interior_seconds"])


def test_a_case_that_does_not_exist_is_named_with_those_near_it():
    done = bench_gpu("--case", "laplace2d-star-f32/stream/defualt")
    assert done.returncode == 2 and "did you mean laplace2d-star-f32/stream/default" in done.stderr


# ---- the bars of its table -------------------------------------------------------------------------------------------


def sweep_line(app: str, form: str, share: float, levels: int = 1, real: str = "f32") -> dict:
    """A kernel that takes 1/share of its copy's time."""
    return {
        "figure": "gpu-sweep",
        "app": app,
        "form": form,
        "real": real,
        "variant": "fused" if levels > 1 else "stream",
        "block": [0, 0, 0],
        "levels": levels,
        "seconds": [1.0],
        "copy_seconds": [share],
    }


def step_record(schedule: str, depth: int, step: float, cells: int = 16384, strategy: str = "ordered/staged") -> dict:
    """A measurement of two ranks whose sweeps take a second a step."""
    request = {
        "app": "laplace2d",
        "form": "star",
        "cells": [cells, cells],
        "ranks": 2,
        "strategy": strategy,
        "schedule": schedule,
        "depth": depth,
    }
    return {
        "kind": "measurement",
        "request": request,
        "time_s": {"step": {"median": step}},
        "phases_s": {"compute": {"max": 1.0}},
    }


def verdicts(kernels: list[dict], steps: list[dict]) -> dict[str, str]:
    """Last cell of each bar's line, by its first."""
    lines = gpu_table.table(kernels, steps, [])
    rows = [line.strip("| ").split(" | ") for line in lines[lines.index("| bar | required | reached | holds |") + 2 :]]
    return {row[0]: row[-1] for row in rows}


def test_a_bar_holds_from_what_was_asked_and_says_when_it_was_not_measured():
    good = [
        sweep_line("laplace2d", "star", 0.95),
        sweep_line("laplace2d", "star", 0.95 * 2.4 / 4 + 1e-9, 4),
        sweep_line("laplace3d", "star", 0.92),
        sweep_line("laplace3d", "star", 0.91, real="f64"),
        sweep_line("advection3d", "dense", 0.87, real="f64"),
    ]
    steps = [
        step_record("bulk", 1, 2.0),
        step_record("streams", 1, 1.2),
        step_record("bulk", 1, 9.0, cells=512),
        step_record("bulk", 1, 7.0, 512, "ordered/staged:stream"),
    ]
    found = verdicts(good, steps)
    assert found.pop("laplace2d star f32: share of the copy's rate") == "yes"
    assert found.pop("laplace2d star f32: steps a second, fused over one by one") == "yes"
    assert found.pop("laplace3d star f32: share of the copy's rate") == "yes"
    assert found.pop("laplace3d star f64: share of the copy's rate") == "no"  # types have kernels of their own
    assert found.pop("advection3d dense f64: share of the copy's rate") == "no"
    assert found.pop("laplace2d star 16384x16384, 2 ranks: plain over best") == "yes"  # 2 / 1.2
    assert found.pop("laplace2d star 512x512, 2 ranks: exchange, staged over staged:stream") == "yes"  # 8 / 6
    assert set(found.values()) == {"not measured"} and len(found) == 1  # the other kernel
    slow = verdicts(
        [*good[:1], sweep_line("laplace2d", "star", 0.3, 4)],
        [
            *steps[:1],
            step_record("streams", 1, 1.8),
            steps[2],
            step_record("bulk", 1, 7.5, 512, "ordered/staged:stream"),
        ],
    )
    assert [slow[title] for title in slow if "ranks" in title or "fused" in title] == ["no", "no", "no"]


def overlap_line(serial: list[float], together: list[float], interior: float) -> dict:
    """A step of one process."""
    return {
        "figure": "gpu-overlap",
        "app": "laplace2d",
        "form": "star",
        "real": "f32",
        "cells": [16384, 16384, 1],
        "serial_seconds": serial,
        "together_seconds": together,
        "interior_seconds": [interior] * len(serial),
    }


def test_what_is_hidden_of_an_exchange_is_the_median_of_pairs_with_its_interval():
    line = overlap_line([2.0, 2.0, 3.0, 2.0, 2.0], [1.0, 1.1, 1.2, 1.5, 1.05], 1.0)
    found = gpu_table.overlap_of(line)
    assert found.hidden == pytest.approx([1.0, 0.9, 0.9, 0.5, 0.95]) and found.median == pytest.approx(0.9)
    assert gpu_table.median_interval(found.hidden) == (0.5, 1.0) and found.possible == 1.0
    assert gpu_table.median_interval(list(range(19))) == (4, 14)  # 95 % and more, by the binomial distribution
    assert verdicts([line], [])["laplace2d f32 16384x16384: share of the exchange hidden"] == "yes"
    longer = gpu_table.overlap_of(overlap_line([3.0], [2.0], 1.0))  # twice as long as what could hide it
    assert longer.median == longer.possible == 0.5


def block_record(variant: str, means: list[float], workload: str = "XL", ranks: int = 2) -> dict:
    """A record of blocks with some tests, each of one iteration that warms up and two that take the mean."""
    request = {"workload": workload, "ranks": ranks, "variant": variant, "warmup": 1}
    return {"kind": "blocks", "request": request, "iterations_s": [[9.0, mean, mean] for mean in means]}


def test_task_queues_are_compared_with_the_best_baseline_test_by_test():
    exchanged = [
        block_record("baseline:a", [1.3, 1.5]),
        block_record("baseline:b", [2.0, 2.0]),
        block_record("taskqueue:c", [1.0, 1.0]),
        block_record("kernels:d", [0.1, 0.1]),
        block_record("taskqueue:e", [4.0], workload="M"),
        {"kind": "failed"},
        block_record("taskqueue:w", [3.0], ""),
        block_record("taskqueue:chunks=4", [2.0], ""),
    ]
    gains = {g.which: g for g in gpu_table.queue_gains(exchanged)}
    assert set(gains) == {"XL", "equal"}  # of M no baseline was measured
    assert (gains["XL"].slower, gains["XL"].faster) == ("baseline:a", "taskqueue:c")
    assert gains["XL"].ratios == [1.3, 1.5] and gains["equal"].median == 1.5
    rows = [
        line.split(" | ")
        for line in gpu_table.table([], [], exchanged)
        if "blocks XL" in line or "blocks equal" in line
    ]
    assert [row[-1].rstrip(" |") for row in rows] == ["yes", "yes"]


def test_the_largest_workload_is_exchanged_first():
    lines = gpu_cases.blocks(1, False, "cuda")
    assert lines[0]["request"]["workload"] == "XL" and lines[-1]["request"]["workload"] == "XS"
    assert len({line["id"] for line in lines}) == len(lines)


@pytest.mark.parametrize(("share", "floor", "holds"), [(0.8, 0.1, "yes"), (0.4, 0.95, "yes"), (0.7, 0.5, "no")])
def test_packing_is_fast_enough_where_it_is_no_slower_than_a_launch(share, floor, holds):
    line = {"figure": "gpu-pack", "cells": 256, "seconds": [1.0], "copy_seconds": [share], "one_piece_seconds": [floor]}
    assert verdicts([line], [])["pack: share of the copy's rate, or at the floor of a launch"] == holds
