"""The rank program on a device, as bench/gpu.py starts it: lists of requests, of which one that crashes costs itself
only.

Standard library only, because nothing else is where it runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu_build import Programs, ask_device, check_device, nvcc
from gpu_cases import LAPLACE2D, in_turn, line, way
from gpu_run import Deadline, Ended, Journal, Log, end_leftovers, run

TWO = LAPLACE2D | {"cells": (64, 64), "strategy": "ordered/staged", "steps": 2, "repetitions": 1, "verify": 3}
CASE_S = 40  # a case without a record after so long is ended
DAEMON_S = 30  # MPS starts and quits within so long
QUITTING_S = 5  # of it even where no time is left
REPLACED = 3  # daemons of MPS that have gone bad, after which there is none
GIVEN_UP = 3  # failures of a way that has never worked, after which its turn comes when all else is done
UNAVAILABLE = 3  # code of a rank program that is refused what it needs
FAULT = 77  # code of compute-sanitizer where it has found one

# Without a network, MPICH or its launcher may not detect that all ranks are on this machine.
ALONE = {"HYDRA_IFACE": "lo"}
MPI_WAYS = ({}, ALONE | {"MPIR_CVAR_CH4_NETMOD": "ucx", "UCX_TLS": "sm,self"}, ALONE | {"MPIR_CVAR_CH4_NETMOD": "ofi"})


class SharedDevice:
    """NVIDIA's MPS daemon, which lets kernels of several processes run concurrently; without it ranks take turns.

    environment: that of processes which share the device by it; empty without one.
    """

    def __init__(self, programs: Programs, device: str, log: Log, deadline: Deadline, mark: Path):
        self.control = shutil.which("nvidia-cuda-mps-control") if device == "cuda" else None
        self.log, self.deadline, self.mark = log, deadline, mark
        self.ask = [programs.kernels, "--device", device, "--info"]
        self.environment: dict[str, str] = {}
        self.replaced = 0

    def start(self) -> None:
        """Have a daemon, if there can be one that serves a program."""
        if self.control is None:
            return
        folder = tempfile.mkdtemp(prefix="mps")
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        limit_s = min(DAEMON_S, self.deadline.left())
        if not (tell_daemon([self.control, "-d"], "", self.environment, self.log, limit_s) and self.serves()):
            self.end()

    def serves(self) -> bool:
        """Whether a program that shares the device gets an answer from it."""
        return run(self.ask, 10, self.environment, self.mark, until=self.deadline).code == 0

    def end(self) -> None:
        """End the daemon and all that runs by it."""
        environment, self.environment = self.environment, {}
        if not environment:
            return
        folder = Path(environment["CUDA_MPS_PIPE_DIRECTORY"])
        limit_s = max(QUITTING_S, min(DAEMON_S, self.deadline.left()))
        if not tell_daemon([self.control], "quit\n", environment, self.log, limit_s):
            end_leftovers(folder, "CUDA_MPS_PIPE_DIRECTORY")
        shutil.rmtree(folder, ignore_errors=True)

    def mend(self) -> None:
        """After a case that failed: another daemon in place of one that the case has spoilt, some times; then none."""
        if not self.environment or self.serves() or self.deadline.left() <= 0:
            return
        self.end()
        self.replaced += 1
        if self.replaced > REPLACED:
            self.log.say("MPS: its daemons fail again and again; ranks take turns from now on")
            return
        self.log.say("MPS: the daemon no longer serves; another one is started")
        self.start()


def tell_daemon(words: Sequence[str], said: str, environment: dict[str, str], log: Log, limit_s: float) -> bool:
    """Whether the control program of MPS did what it was told to, in time."""
    try:
        done = subprocess.run(
            words,
            check=False,
            input=said.encode(),
            env=os.environ | environment,
            stdout=subprocess.DEVNULL,
            timeout=limit_s,
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.say(f"MPS: {error}")
        return False
    return done.returncode == 0


class Ranks:
    """Starts the rank program, which appends its records to a journal."""

    def __init__(
        self,
        programs: Programs,
        device: str,
        log: Log,
        deadline: Deadline,
        mark: Path,
        shared: SharedDevice | None = None,
    ):
        self.programs, self.device, self.log, self.deadline, self.mark = programs, device, log, deadline, mark
        self.shared = shared or SharedDevice(programs, device, log, deadline, mark)
        self.mpi: dict[str, str] = {}  # environment in which MPI starts here
        self.launches = 0
        self.started = time.strftime("%Y%m%dT%H%M%S", time.gmtime())

    @property
    def environment(self) -> dict[str, str]:
        """Of ranks: as MPI needs it, and shared by MPS where there is a daemon."""
        return self.shared.environment | self.mpi

    def try_out(self) -> str:
        """Finds an environment in which two ranks get the right bytes, with MPS if possible. Returns the fault, or
        "".
        """
        said = self.try_mpi()
        if said and self.shared.environment:
            self.shared.end()
            said = self.try_mpi()
        return said

    def try_mpi(self) -> str:
        """Find an environment for MPI."""
        said = ""
        for self.mpi in MPI_WAYS:
            started = self.two(["true"], 5)
            if started.code == 0:
                with tempfile.TemporaryDirectory() as scratch:
                    journal = Journal(Path(scratch) / "records", "id")
                    ended = self.launch(2, [line(TWO, 2, self.device)], journal, 20)
                    record = next(iter(journal.lines), {"reason": ended.reason()})
                if record.get("verification", {}).get("status") == "passed":
                    return ""
                started = Ended(None, str(record.get("reason", record)))
            said = said or started.said
        return said or "mpiexec starts nothing"

    def aware(self) -> bool | None:
        """Whether this MPI sends device memory; one that crashes on it does not. None: there was no time to find
        out.
        """
        done = self.two([self.programs.rank, "--probe", "device-aware"], 30)
        return None if self.deadline.has_cut(done) else '"ok":true' in done.said.replace(" ", "")

    def memory_faults(self, lines: list[dict]) -> dict | None:
        """What compute-sanitizer finds in a few requests of two ranks, as a line of a journal; None: its time was
        up.
        """
        beside = Path(nvcc()).with_name("compute-sanitizer")
        tool = shutil.which("compute-sanitizer") or (str(beside) if beside.exists() else None)
        if tool is None or self.device != "cuda":
            return {"found": "not here"}
        with tempfile.TemporaryDirectory() as scratch:
            file = write_requests(Path(scratch), lines)
            words = [
                tool,
                "--error-exitcode",
                str(FAULT),
                self.programs.rank,
                "--watchdog",
                "80",  # its first launches are slow
                "--requests",
                file,
                "--output",
                os.devnull,
            ]
            done = self.two(words, 90, self.mpi)  # the tool and MPS do not go together
        return None if done.code is None else faults_in(done)

    def two(
        self, words: Sequence[str | Path | None], limit_s: float, environment: Mapping[str, str] | None = None
    ) -> Ended:
        """A command on two ranks, in their environment or in another one."""
        whole = [self.programs.mpiexec, "-n", "2", *(str(word) for word in words)]
        try:
            there = self.environment if environment is None else environment
            return run(whole, min(limit_s, self.deadline.left()), there, self.mark)
        except OSError as error:
            return Ended(127, str(error))

    def run(self, ranks: int, lines: list[dict], journal: Journal, until: Deadline, every: bool = False) -> None:
        """Have all requests that the journal lacks recorded, as many as there is time for; ways take turns. Ways that
        are given up are left out, unless `every` way is asked for."""
        while until.left() > 0:
            lost = set() if every else given_up(journal)
            todo = [asked for asked in in_turn(lines) if asked["id"] not in journal.done and way(asked) not in lost]
            if not todo:
                return
            ended = self.launch(ranks, todo, journal, min(CASE_S, until.left()), until)
            missing = next((asked for asked in todo if asked["id"] not in journal.done), None)
            if missing is None:
                return
            if until.has_cut(ended):
                return
            journal.append(self.failed(missing, ended.reason()))
            self.log.keep(f"{missing['id']}: {ended.reason()}")
            check_device(ask_device(self.programs.kernels, self.device, self.mark, self.deadline), self.deadline)
            self.shared.mend()

    def failed(self, asked: dict, reason: str) -> dict:
        """The record of a request that ended its launch."""
        launch = {"id": f"{self.started}-{self.launches}"}
        what = {"schema": "haloscope.record", "schema_version": 2, "kind": "failed", "launch": launch, "reason": reason}
        return asked | what

    def launch(
        self, ranks: int, lines: list[dict], journal: Journal, case_s: float, until: Deadline | None = None
    ) -> Ended:
        """One launch; it ends by itself, or when no record has come for `case_s`, or at the deadline."""
        self.launches += 1
        with tempfile.TemporaryDirectory() as scratch:
            words = [
                self.programs.mpiexec,
                "-n",
                str(ranks),
                str(self.programs.rank),
                "--requests",
                str(write_requests(Path(scratch), lines)),
                "--output",
                str(journal.path),
                "--launch-id",
                f"{self.started}-{self.launches}",
            ]
            ended = run(words, case_s, self.environment, self.mark, journal.size, until or self.deadline)
        journal.refresh()
        return ended


def faults_in(ended: Ended) -> dict:
    """What a program said under compute-sanitizer. mpiexec mixes the codes of ranks, but what they say stays."""
    if ended.code == FAULT or re.search(r"ERROR SUMMARY: [1-9]", ended.said):
        return {"error": f"faults of memory: {ended.said.strip()[-2000:]}"}
    if ended.code == UNAVAILABLE:
        return {"found": "no fault in what could run", "refused": ended.reason()}
    return {"found": "no fault"} if ended.code == 0 else {"error": ended.reason()}


def given_up(journal: Journal) -> set[str]:
    """Ways that have failed several times and never worked: each further try would cost time and tell nothing."""
    failures, others = Counter(), Counter()
    for record in journal.lines:
        (failures if record["kind"] == "failed" else others)[way(record)] += 1
    return {name for name, count in failures.items() if count >= GIVEN_UP and name not in others}


def write_requests(folder: Path, lines: list[dict]) -> Path:
    """A file of requests."""
    path = folder / "requests.jsonl"
    path.write_text("".join(json.dumps(asked) + "\n" for asked in lines))
    return path
