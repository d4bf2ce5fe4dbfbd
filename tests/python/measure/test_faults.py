"""What bad input and faults get: one clear message, the right exit code, whole records, and no rank left running."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from haloscope import bridge, files, records
from haloscope.bridge import build
from haloscope.measure import faults, launch
from haloscope.measure.ends import Ends
from haloscope.measure.request import Request
from programs import executable
from test_records import measurement, write
from test_timeline import clock_tolerance_us

SMALL = ("--cells", "24", "--steps", "4", "--repetitions", "2", "--launches", "1")
ENDLESS = ("--cells", "512", "--steps", "2000", "--repetitions", "1000000", "--launches", "1", "--depth", "1,2")


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["laplace2d", "--cells", "0x8"], "0 cells in x"),
        (["laplace2d", "--cells", "-8x8"], "cells"),
        (["laplace2d", "--cells", "8x1", "--ranks", "9", "--process-grid", "9x1"], "more ranks than cells|ranks"),
        (["laplace2d", "--cells", "8", "--depth", "5", "--ranks", "2"], "halo|depth"),
        (["laplace2d", "--cells", "24", "--strategy", "orderd/p2p"], "did you mean .*ordered/p2p"),
        (["laplace2d", "--cells", "24", "--schedule", "interleaved", "--strategy", "direct/p2p"], "split"),
        (["laplace2d", "--cells", "24", "--schedule", "comm-thread"], "--threads 2"),
        (["laplace2d", "--cells", "24x24x24"], "LENGTHxHEIGHT"),
    ],
)
def test_what_can_never_work_is_refused_with_the_reason_before_anything_starts(haloscope, words, pattern):
    result = haloscope("run", *words)
    assert result.code == 2
    assert re.search(pattern, result.err), result.err
    assert result.err.count("\n") == 1
    assert not Path("results").exists()


@pytest.mark.ids("W6")
def test_an_unstable_step_is_refused_and_its_record_says_why(haloscope):
    unstable = {"velocity": "2,1,1", "nu": "1"}
    words = [word for name, value in unstable.items() for word in ("--set", f"{name}={value}")]
    result = haloscope("run", "advection3d", *SMALL, *words, "--output", "r.jsonl")
    assert result.code == 2 and "unstable" in result.err and "--set nu=0.5 or less" in result.err
    assert not Path("r.jsonl").exists()
    request = Request.of(bridge.Choice("advection3d", (24, 24, 24), set=tuple(unstable.items())))
    launch.run(launch.Job([request], Path("r.jsonl"), "launch-1"))  # the ranks themselves refuse it too
    [record] = records.read("r.jsonl").records
    assert (record["kind"], record["exit_code"], record["id"]) == ("skipped", 2, request.id)
    assert "unstable" in record["reason"]
    assert haloscope("run", "advection3d", *SMALL, "--set", "velocity=2,1,1", "--set", "nu=0.5").code == 0


def test_in_a_sweep_the_impossible_is_recorded_and_the_rest_runs(haloscope):
    result = haloscope(
        "run", "laplace2d", *SMALL, "--schedule", "bulk,interleaved", "--strategy", "direct/p2p", "--output", "r.jsonl"
    )
    assert result.code == 0
    kinds = {r["request"]["schedule"]: r["kind"] for r in records.read("r.jsonl").records}
    assert kinds == {"bulk": "measurement", "interleaved": "skipped"}
    assert "1 not run" in result.out


def test_a_foreign_mpiexec_is_noticed_by_the_ranks(haloscope, monkeypatch, tmp_path):
    foreign = executable(
        tmp_path / "mpiexec", 'test "$1" = --version && exit 0\nshift 2\n"$@" & "$@"; code=$?; wait; exit $code\n'
    )
    monkeypatch.setenv("HALOSCOPE_MPIEXEC", str(foreign))
    result = haloscope("run", "laplace2d", *SMALL, "--output", "r.jsonl")
    assert result.code == 2
    assert "started with 1 rank(s) instead of 2" in result.err and "mpiexec" in result.err


def test_an_mpiexec_that_starts_nothing_is_named(haloscope, monkeypatch, tmp_path):
    useless = executable(tmp_path / "mpiexec", "echo broken beyond repair; exit 7\n")
    monkeypatch.setenv("HALOSCOPE_MPIEXEC", str(useless))
    result = haloscope("run", "laplace2d", *SMALL, "--output", "r.jsonl")
    assert result.code == 1
    assert "code 7" in result.err and "broken beyond repair" in result.err


def test_unreadable_and_truncated_record_files_keep_their_good_lines(haloscope, tmp_path):
    assert haloscope("compare", "missing.jsonl", "missing.jsonl").code == 2
    whole = write(tmp_path / "a.jsonl", measurement("a"), measurement("b"))
    cut = tmp_path / "cut.jsonl"
    cut.write_text(whole.read_text()[:-30])
    result = haloscope("compare", whole, cut)
    assert result.code == 0
    assert "cut.jsonl, line 2" in result.err
    assert "only in" in result.out and "a.jsonl: 1 (b)" in result.out


def test_no_space_left_ends_the_run_with_what_to_do(haloscope, monkeypatch):
    monkeypatch.setattr(files, "refuse_additions", lambda path: None)  # a device stands for a file on a full disk
    result = haloscope("run", "laplace2d", *SMALL, "--output", "/dev/full")
    assert result.code == 1
    assert "No space left" in result.err


def test_an_output_that_cannot_be_written_is_refused_before_measuring(haloscope, tmp_path):
    (tmp_path / "file").write_text("")
    result = haloscope("run", "laplace2d", *SMALL, "--output", tmp_path / "file" / "r.jsonl")
    assert result.code == 1
    assert "--output" in result.err


# ---- ranks that die, stick or are interrupted ------------------------------------------------------------------------


def ranks_of(output: Path) -> list[psutil.Process]:
    """The running ranks that write to `output`."""
    return [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if (process.info["name"] or "").startswith("haloscope-rank") and str(output) in (process.info["cmdline"] or [])
    ]


def is_stopped(rank: psutil.Process) -> bool:
    """Whether a rank waits to be continued."""
    return rank.status() == psutil.STATUS_STOPPED


class Run:
    """`haloscope run` in a process of its own."""

    def __init__(self, folder: Path, *words):
        self.output = folder / "r.jsonl"
        command = [sys.executable, "-m", "haloscope.cli", "run", "laplace2d", *words, "--output", str(self.output)]
        # Shells start background jobs, such as a whole test run, with Ctrl-C ignored, and children inherit that.
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (takes no lock)
        )

    def until(self, all_of: Callable[[list[psutil.Process]], bool], limit: float = 60) -> list[psutil.Process]:
        """Wait until something holds for the ranks, and return them."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            found = ranks_of(self.output)
            if all_of(found):
                return found
            time.sleep(0.05)
        raise AssertionError(f"within {limit} s the ranks did not get there")

    def until_running(self, ranks: int) -> list[psutil.Process]:
        """Wait until all ranks have used some processor time, so that they are measuring."""
        return self.until(lambda found: sum(p.cpu_times().user > 0.3 for p in found) == ranks)

    def until_stopped(self) -> psutil.Process:
        """Wait until a rank has stopped itself."""
        return next(filter(is_stopped, self.until(lambda found: any(map(is_stopped, found)))))

    def failure(self) -> str:
        """Wait for the end, by a failure that leaves nothing running, and return the output."""
        out, err = self.process.communicate(timeout=60)
        _, alive = psutil.wait_procs(ranks_of(self.output), timeout=5)  # one that was killed may not have ended yet
        assert alive == []
        assert self.process.returncode == 1, out + err
        return out + err

    def failed_record(self) -> dict:
        found = records.read(self.output)
        assert found.bad_lines == []
        [record] = [r for r in found.records if r["kind"] == "failed"]
        return record


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupting_ends_all_ranks_and_leaves_whole_records(tmp_path, number):
    run = Run(tmp_path, *ENDLESS)
    run.until_running(2)
    run.process.send_signal(number)
    text = run.failure()
    assert "interrupted" in text and f"the same command with --output {run.output} --resume continues" in text
    assert records.read(run.output).bad_lines == []


def test_ranks_do_not_outlive_a_launcher_that_is_killed(tmp_path):
    run = Run(tmp_path, *ENDLESS)
    ranks = run.until_running(2)
    run.process.kill()
    _, alive = psutil.wait_procs(ranks, timeout=20)
    assert not alive
    run.process.communicate(timeout=20)


def test_a_rank_killed_from_outside_is_named_with_its_phase_and_step(tmp_path):
    run = Run(tmp_path, *ENDLESS)
    victim = run.until_running(2)[1].pid
    os.kill(victim, signal.SIGKILL)
    text = run.failure()
    # Named as the one that died, or, where two ranks waited for each other in the same step, as the one it may have
    # been.
    assert re.search(rf"rank \d \(process {victim}\) (died|was ended by signal 9|may have been the first)", text), text
    record = run.failed_record()
    if record["phase"] == "idle":  # killed between two repetitions
        assert "during idle" in text, text
        return
    assert re.search(r"in phase \w+ of step \d+", text), text
    assert record["phase"] in faults.operations() and record["step"] > 0


def test_a_rank_that_dies_in_the_middle_of_a_step_is_named_with_who_waited(tmp_path):
    run = Run(tmp_path, *ENDLESS, "--inject", "kill:rank=1,step=50,op=send")
    text = run.failure()
    assert re.search(r"rank 1 \(process \d+\) (died or was killed|was ended by signal 9 \(SIGKILL\))", text), text
    assert "rank 0 was waiting for it" in text
    record = run.failed_record()
    assert record["rank"] == 1 and record["step"] >= 50 and record["id"].startswith("laplace2d")


def test_a_rank_without_progress_ends_the_run_and_names_rank_phase_step_and_who_waited(tmp_path):
    run = Run(tmp_path, *ENDLESS, "--watchdog", "1", "--inject", "hang:rank=1,step=30,op=send")
    text = run.failure()
    assert re.search(r"rank 1 \(process \d+\) made no progress for [\d.]+ s in phase \w+ of step \d+", text), text
    assert "rank 0 was waiting for it in phase wait" in text
    assert run.failed_record()["rank"] == 1


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--device", "host", "--strategy", "ordered/staged", "--schedule", "streams"),
        ("--device", "host", "--strategy", "ordered/ipc"),
        ("--device", "host", "--strategy", "ordered/staged:stream", "--schedule", "streams"),
        ("--device", "host", "--strategy", "direct/taskqueue:chunks=2", "--schedule", "streams"),
        ("--device", "host", "--strategy", "ordered/p2p", "--schedule", "box-overlap"),
    ],
)
def test_an_error_of_one_rank_in_the_middle_of_a_step_ends_all_and_says_which_rank_and_what(tmp_path, words):
    run = Run(tmp_path, *ENDLESS, *words, "--inject", "fail:rank=1,step=20,op=sweep")
    text = run.failure()
    assert "rank 1: injected before operation 'sweep' of step" in text
    record = run.failed_record()
    assert record["rank"] == 1 and record["phase"] == "sweep" and record["step"] >= 20


DEVICE_STRATEGIES = ("direct/taskqueue", "direct/staged:stream", "ordered/staged", "ordered/ipc", "direct/aware")


@pytest.mark.parametrize(
    ("strategy", "seconds"),
    [
        ("direct/taskqueue", 2.5),  # longer than a kernel that waits stays on the device
        *(pytest.param(strategy, 60, marks=pytest.mark.long) for strategy in DEVICE_STRATEGIES),
    ],
)
def test_a_rank_that_was_stopped_for_a_while_has_changed_nothing(tmp_path, monkeypatch, strategy, seconds):
    monkeypatch.setenv("HALOSCOPE_PATIENCE", "1")
    words = "--cells 256 --seconds 2 --launches 1 --repetitions 1 --warmup 0 --device host --inject stop:rank=1,step=30"
    run = Run(tmp_path, *words.split(), "--strategy", strategy)
    rank = run.until_stopped()
    time.sleep(seconds)
    rank.send_signal(signal.SIGCONT)
    out, err = run.process.communicate(timeout=60)
    assert run.process.returncode == 0, out + err
    assert re.search(r"haloscope: rank [01] has waited for [\d.]+ s", err), err
    [record] = records.read(run.output).records
    assert record["kind"] == "measurement" and record["verification"]["status"] == "passed"


@pytest.mark.parametrize(
    ("strategy", "operation"),
    [("ordered/staged", "d2h"), ("direct/taskqueue", "send"), ("direct/staged:stream", "send")],
)
def test_a_device_that_waits_for_a_rank_that_sticks_does_not_keep_its_rank_from_ending(tmp_path, strategy, operation):
    words = ("--device", "host", "--strategy", strategy, "--watchdog", "1")
    text = Run(tmp_path, *ENDLESS, *words, "--inject", f"hang:rank=1,step=30,op={operation}").failure()
    late = rf"rank 1 \(process \d+\) made no progress for [\d.]+ s in phase {operation} of step \d+"
    assert re.search(late, text), text


@pytest.mark.parametrize(
    "words",
    [
        ("--strategy", "ordered/staged", "--schedule", "streams"),
        ("--strategy", "direct/staged", "--schedule", "faces-overlap"),
        ("--strategy", "ordered/ipc"),
        ("--strategy", "direct/staged:stream", "--schedule", "streams"),
        ("--strategy", "direct/taskqueue:device", "--schedule", "streams"),
        ("--strategy", "ordered/p2p", "--schedule", "box-overlap"),
    ],
)
def test_a_device_that_is_lost_ends_all_ranks_and_says_which_call_of_which_rank(tmp_path, monkeypatch, words):
    monkeypatch.setenv("HALOSCOPE_TEST_DEVICE", "devices=2,lost=3000")  # the second one is rank 1's
    with_faults = build.rank_program().parent / "tests" / "rank_with_faults"
    run = Run(tmp_path, *ENDLESS, "--device", "host", "--program", with_faults, *words)
    text = run.failure()
    assert re.search(
        r"rank 1: (transport '\w+' has failed: )?call \w+ of back end host failed: the device is lost", text
    ), text
    record = run.failed_record()
    assert record["rank"] == 1 and record["step"] > 0 and record["phase"] in faults.operations()
    assert "the device is lost" in record["reason"]


@pytest.mark.ids("V15")
def test_a_late_rank_is_waited_for_in_the_barrier_before_messages_are_sent(measure):
    late = 0.005
    [record] = measure(
        "laplace2d --cells 32 --steps 10 --repetitions 2 --launches 1 --verify 0 --barrier --trace t.json "
        f"--inject delay:rank=1,step=-1,seconds={late},op=barrier"
    )
    assert record["phases_s"]["desync"]["rank0"] > 0
    assert record["phases_s"]["rest"]["max"] >= 0.999 * late  # the late rank's sleep is none of its operations
    assert record["time_s"]["step"]["min"] >= 0.999 * late
    operations = [e for e in json.loads(Path("t.json").read_text()) if "op" in e["args"]]
    barriers = {(e["pid"], e["args"]["step"]): e for e in operations if e["name"] == "barrier"}
    steps = {step for _, step in barriers}
    assert len(steps) == 10 and len(barriers) == 20
    tolerance_us = clock_tolerance_us(Path("t.json"))
    for step in steps:
        over = barriers[0, step]["ts"] + barriers[0, step]["dur"]
        assert over >= barriers[1, step]["ts"] - tolerance_us
        mine = [e for e in operations if e["pid"] == 0 and e["args"]["step"] == step and e["name"] in ("send", "wait")]
        assert mine and all(e["ts"] >= over - tolerance_us for e in mine)  # so that no message holds the delay
    # The late rank sleeps, so that the other has a core: in one of ten steps at least, it arrives in time to wait.
    assert max(barriers[0, step]["dur"] for step in steps) >= 1e6 * late / 2


@pytest.mark.ids("V15")
def test_without_the_barrier_there_is_no_desync(measure):
    [record] = measure("laplace2d", *SMALL)
    assert record["phases_s"]["desync"]["max"] == 0


# ---- reading the board -----------------------------------------------------------------------------------------------


def board(path: Path, *slots) -> list[faults.Slot]:
    """Write a board of (pid, phase, step, order, waiting_for) and read it back."""
    data = faults.HEADER.pack(faults.MAGIC, len(slots), 64).ljust(faults.HEADER_BYTES, b"\0")
    data += b"".join(faults.SLOT.pack(p, ph, s, o, w, 0, 1).ljust(64, b"\0") for p, ph, s, o, w in slots)
    path.write_bytes(data)
    return faults.read_board(path)


def test_the_culprit_is_at_the_end_of_who_waits_for_whom(tmp_path):
    slots = board(tmp_path / "b", (11, 5, 7, 0, 1), (12, 5, 7, 0, 2), (13, 8, 6, 0, -1))
    found = faults.diagnose(slots, ["haloscope: rank 0 made no progress for 10.0 s in phase wait of step 7"], 1)
    assert (found.rank, found.phase, found.step) == (2, "sweep", 6)
    assert found.reason == (
        "rank 2 (process 13) made no progress for 10.0 s in phase sweep of step 6; "
        "rank 1 was waiting for it in phase wait of step 7"
    )


def test_ranks_that_wait_for_each_other_in_a_circle_are_reported_and_not_followed_forever(tmp_path):
    slots = board(tmp_path / "b", (11, 5, 7, 0, 1), (12, 5, 7, 0, 0))
    found = faults.diagnose(slots, ["haloscope: rank 1 made no progress for 3.0 s"], 1)
    assert found.waiting_for is not None and "waiting for rank" in found.reason


def test_open_mpi_names_the_rank_and_hydra_the_process(tmp_path):
    slots = board(tmp_path / "b", (11, 5, 7, 0, 1), (12, 4, 7, 0, -1))
    hydra = ["=   PID 12 RUNNING AT host", "=   EXIT CODE: 9", "EXIT STRING: Killed (signal 9)"]
    openmpi = ["mpirun noticed that process rank 1 with PID 0 on node host exited on signal 9 (Killed)."]
    for log in (hydra, openmpi):
        found = faults.diagnose(slots, log, 137)
        assert (found.rank, found.phase) == (1, "send")
        assert "signal 9 (SIGKILL)" in found.reason and "rank 0 was waiting for it" in found.reason


def test_a_rank_that_hydra_ended_itself_is_not_taken_for_the_one_that_died(tmp_path):
    log = ["=   PID 11 RUNNING AT host", "EXIT STRING: Killed (signal 9)"]
    waiting = board(tmp_path / "b", (11, 5, 7, 0, 1), (12, 4, 7, 0, -1))
    assert faults.diagnose(waiting, log, 9).rank == 1
    circle = board(tmp_path / "c", (11, 5, 8, 0, 1), (12, 5, 7, 0, 0))  # rank 0 had rank 1's message and went on
    assert faults.diagnose(circle, log, 9).rank == 1
    level = board(tmp_path / "d", (11, 5, 7, 0, 1), (12, 5, 7, 0, 0))  # indistinguishable: hydra's word counts
    assert faults.diagnose(level, log, 9).rank == 0
    # Hydra itself failed and names no rank: the board alone has it.
    assert faults.diagnose(waiting, ["[mpiexec@host] main: callback returned error status"], 255).rank == 1


def test_the_rank_furthest_behind_is_named_where_nothing_is_printed_and_no_rank_waits(tmp_path):
    behind = faults.diagnose(board(tmp_path / "b", (11, 8, 9, 0, -1), (12, 4, 7, 0, -1)), [], 9)
    assert behind.rank == 1 and behind.reason.startswith("rank 1 (process 12) died or was killed in phase send of step")
    level = faults.diagnose(board(tmp_path / "c", (11, 8, 7, 0, -1), (12, 4, 7, 0, -1)), [], 9)
    assert level.rank == 0 and "rank 1 (process 12) in phase send of step 7 may have been the first" in level.reason
    assert "mpiexec ended with code 9" in level.reason
    assert faults.diagnose(board(tmp_path / "d", (11, 8, 7, 0, -1)), [], -9).rank is None  # mpiexec itself was killed


def test_the_rank_seen_to_end_first_is_named_whatever_the_others_wait_for(tmp_path):
    log = ["=   PID 11 RUNNING AT host", "EXIT STRING: Killed (signal 9)"]  # hydra's own victim
    waited = board(
        tmp_path / "b", (11, 8, 7, 0, -1), (12, 5, 8, 0, 0)
    )  # killed from outside while it waited for rank 0
    for lines, returncode in ((log, 9), ([], 9)):
        found = faults.diagnose(waited, lines, returncode, ended=[{12}, {11}])
        assert found.rank == 1 and found.reason.startswith(
            "rank 1 (process 12) died or was killed in phase wait of step 8"
        )
    circle = board(tmp_path / "c", (11, 5, 7, 0, 1), (12, 5, 7, 0, 0))
    certain = faults.diagnose(circle, log, 9, ended=[{12}, {11}])
    assert certain.rank == 1 and "may have been the first" not in certain.reason
    own = faults.diagnose(circle, log, 9, ended=[{11}, {12}])
    assert own.rank == 0 and "was ended by signal 9 (SIGKILL)" in own.reason
    # Seen to end together, or after a rank that was done: no evidence of the first.
    assert "may have been the first" in faults.diagnose(circle, log, 9, ended=[{11, 12}]).reason
    done = board(tmp_path / "d", (11, 103, 7, 0, -1), (12, 5, 7, 0, -1), (13, 5, 7, 0, 1))
    assert faults.diagnose(done, log, 9, ended=[{11}, {13}, {12}]).rank == 2
    assert faults.diagnose(circle, ["haloscope: no such thing"], 2, ended=[{11}, {12}]) is None


def test_ends_of_processes_are_kept_in_their_order():
    launcher, slow, quick = (subprocess.Popen(["sleep", "60"]) for _ in range(3))
    ends = Ends(launcher.pid)
    ends.watch([slow.pid, quick.pid, slow.pid, 2**22 + 1])  # the last one can be no process
    assert quick.pid in ends and 2**22 + 1 not in ends
    ends.wait(0)
    assert ends.order == [set()]
    for process in (quick, slow, launcher):
        process.kill()
        process.wait()
        ends.wait(10)
    ends.close()
    assert [ended for ended in ends.order if ended] == [{quick.pid}, {slow.pid}]


def test_a_process_that_ended_before_it_was_watched_does_not_make_a_later_one_the_first():
    launcher, late, later = (subprocess.Popen(["sleep", "60"]) for _ in range(3))
    early, other, last = 2**22 + 1, 2**22 + 2, 2**22 + 3  # these can be no processes: they have ended
    ends = Ends(launcher.pid)
    ends.wait(0)
    ends.watch([late.pid, later.pid], ended=[early])
    late.kill()
    late.wait()
    ends.wait(10)
    ends.watch([], ended=[early, late.pid, other])  # it may have ended before or after the one that the wait saw
    later.kill()
    later.wait()
    ends.watch([], ended=[last, later.pid])
    ends.close()
    launcher.kill()
    launcher.wait()
    assert [ended for ended in ends.order if ended] == [{early}, {late.pid, other, last}, {later.pid}]


def test_of_several_ranks_found_dead_the_first_to_end_is_named(tmp_path):
    slots = board(tmp_path / "b", (11, 5, 7, 0, 1), (12, 4, 7, 0, -1), (13, 4, 7, 0, -1))
    assert faults.diagnose(slots, [], 9, dead=slots[:2]).rank == 1  # rank 0 was alive while it waited for rank 1
    assert faults.diagnose(slots, [], 9, dead=slots[:1]).rank == 0  # the awaited rank is alive
    assert faults.diagnose(slots, [], 9, dead=slots[:2], ended=[{11}, {12}]).rank == 0
    assert faults.diagnose(slots, [], 0, dead=slots[:2], ended=[set(), {12}, {11}]).rank == 1
    # Hydra has joined the bits of SIGKILL and of the SIGINT that ended the others.
    log = ["=   PID 12 RUNNING AT host", "EXIT STRING: Segmentation fault (signal 11)"]
    assert "rank 1 (process 12) died or was killed" in faults.diagnose(slots, log, 11, slots[1:2], [{12}, {11}]).reason


def test_an_orderly_end_is_no_fault(tmp_path):
    slots = board(tmp_path / "b", (11, 103, 7, 0, -1))
    assert faults.diagnose(slots, ["haloscope: no such thing"], 2) is None


@pytest.mark.parametrize("content", [b"", b"HSBOARD1", b"something else" * 20, b"HSBOARD1" + b"\xff" * 120])
def test_a_board_that_is_none_has_no_slots(tmp_path, content):
    (tmp_path / "b").write_bytes(content)
    assert faults.read_board(tmp_path / "b") == []
    assert faults.read_board(tmp_path / "missing") == []


def test_the_ranks_are_told_how_many_they_must_be(tmp_path):
    request = Request.of(bridge.Choice("laplace2d", (8, 8), ranks=2))
    words = launch.Job([request], tmp_path / "r.jsonl", "launch-1").command(tmp_path)
    assert words[words.index("--expect-ranks") + 1] == "2"
