"""Launches of the rank program on a device for bench/gpu.py, with lists of requests; a crashing request affects only
itself.

The module imports only the standard library, because nothing else exists on the machine with the device.
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
CASE_S = 40  # a case without a record after this time is terminated
DAEMON_S = 30  # limit for starting and quitting MPS
QUITTING_S = 5  # limit for quitting MPS even when no time is left
REPLACED = 3  # faulty MPS daemons that are replaced; after that, ranks run without MPS
GIVEN_UP = 3  # failures of a way that has never worked, after which it moves to the end
UNAVAILABLE = 3  # code of a rank program that lacks a requirement
FAULT = 77  # code of compute-sanitizer for a fault

# Without a network, MPICH or its launcher may not detect that all ranks are on this machine.
ALONE = {"HYDRA_IFACE": "lo"}
MPI_WAYS = ({}, ALONE | {"MPIR_CVAR_CH4_NETMOD": "ucx", "UCX_TLS": "sm,self"}, ALONE | {"MPIR_CVAR_CH4_NETMOD": "ofi"})


class SharedDevice:
    """NVIDIA's MPS daemon, which lets kernels of several processes run concurrently; without it ranks take turns.

    environment: for processes that share the device through the daemon; empty without a daemon.
    """

    def __init__(self, programs: Programs, device: str, log: Log, deadline: Deadline, mark: Path):
        self.control = shutil.which("nvidia-cuda-mps-control") if device == "cuda" else None
        self.log, self.deadline, self.mark = log, deadline, mark
        self.ask = [programs.kernels, "--device", device, "--info"]
        self.environment: dict[str, str] = {}
        self.replaced = 0

    def start(self) -> None:
        """Start a daemon, and end it if it does not serve a program."""
        if self.control is None:
            return
        folder = tempfile.mkdtemp(prefix="mps")
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        limit_s = min(DAEMON_S, self.deadline.left())
        if not (tell_daemon([self.control, "-d"], "", self.environment, self.log, limit_s) and self.serves()):
            self.end()

    def serves(self) -> bool:
        """Return whether a program that shares the device gets an answer from it."""
        return run(self.ask, 10, self.environment, self.mark, until=self.deadline).code == 0

    def end(self) -> None:
        """End the daemon and all processes that use it."""
        environment, self.environment = self.environment, {}
        if not environment:
            return
        folder = Path(environment["CUDA_MPS_PIPE_DIRECTORY"])
        limit_s = max(QUITTING_S, min(DAEMON_S, self.deadline.left()))
        if not tell_daemon([self.control], "quit\n", environment, self.log, limit_s):
            end_leftovers(folder, "CUDA_MPS_PIPE_DIRECTORY")
        shutil.rmtree(folder, ignore_errors=True)

    def mend(self) -> None:
        """Replace the daemon after a failed case that broke it, at most REPLACED times; then end it."""
        if not self.environment or self.serves() or self.deadline.left() <= 0:
            return
        self.end()
        self.replaced += 1
        if self.replaced > REPLACED:
            self.log.say("MPS: its daemons fail repeatedly; ranks take turns from now on")
            return
        self.log.say("MPS: the daemon no longer responds; starting another one")
        self.start()


def tell_daemon(words: Sequence[str], input_text: str, environment: dict[str, str], log: Log, limit_s: float) -> bool:
    """Run the control program of MPS; return whether it succeeded in time."""
    try:
        done = subprocess.run(
            words,
            check=False,
            input=input_text.encode(),
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
        """The environment of ranks: for MPI, and for MPS if a daemon runs."""
        return self.shared.environment | self.mpi

    def try_out(self) -> str:
        """Find an environment in which two ranks get the right bytes, with MPS if possible. Return the fault, or ""."""
        fault = self.try_mpi()
        if fault and self.shared.environment:
            self.shared.end()
            fault = self.try_mpi()
        return fault

    def try_mpi(self) -> str:
        """Find an environment for MPI. Return the fault, or ""."""
        fault = ""
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
            fault = fault or started.output
        return fault or "mpiexec starts nothing"

    def aware(self) -> bool | None:
        """Return whether this MPI sends device memory; False also if it crashes. None: the time was up."""
        done = self.two([self.programs.rank, "--probe", "device-aware"], 30)
        return None if self.deadline.has_cut(done) else '"ok":true' in done.output.replace(" ", "")

    def memory_faults(self, lines: list[dict]) -> dict | None:
        """Return the findings of compute-sanitizer in a few requests of two ranks, as a line of a journal; None: its
        time was up.
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
            done = self.two(words, 90, self.mpi)  # the tool is incompatible with MPS
        return None if done.code is None else faults_in(done)

    def two(
        self, words: Sequence[str | Path | None], limit_s: float, environment: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command on two ranks, in their environment or in another one."""
        whole = [self.programs.mpiexec, "-n", "2", *(str(word) for word in words)]
        try:
            there = self.environment if environment is None else environment
            return run(whole, min(limit_s, self.deadline.left()), there, self.mark)
        except OSError as error:
            return Ended(127, str(error))

    def run(self, ranks: int, lines: list[dict], journal: Journal, until: Deadline, every: bool = False) -> None:
        """Measure the requests that the journal lacks while time is left; ways take turns. Ways that were given up are
        left out, unless `every` is set."""
        while until.left() > 0:
            lost = set() if every else given_up(journal)
            todo = [entry for entry in in_turn(lines) if entry["id"] not in journal.done and way(entry) not in lost]
            if not todo:
                return
            ended = self.launch(ranks, todo, journal, min(CASE_S, until.left()), until)
            missing = next((entry for entry in todo if entry["id"] not in journal.done), None)
            if missing is None:
                return
            if until.has_cut(ended):
                return
            journal.append(self.failed(missing, ended.reason()))
            self.log.keep(f"{missing['id']}: {ended.reason()}")
            check_device(ask_device(self.programs.kernels, self.device, self.mark, self.deadline), self.deadline)
            self.shared.mend()

    def failed(self, entry: dict, reason: str) -> dict:
        """Return the record of a request that ended its launch."""
        launch = {"id": f"{self.started}-{self.launches}"}
        rest = {"schema": "haloscope.record", "schema_version": 2, "kind": "failed", "launch": launch, "reason": reason}
        return entry | rest

    def launch(
        self, ranks: int, lines: list[dict], journal: Journal, case_s: float, until: Deadline | None = None
    ) -> Ended:
        """Run one launch; it is terminated when no record has come for `case_s`, or at the deadline."""
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
    """Return the findings in a program's output under compute-sanitizer. mpiexec mixes the codes of ranks, but their
    output is complete."""
    if ended.code == FAULT or re.search(r"ERROR SUMMARY: [1-9]", ended.output):
        return {"error": f"faults of memory: {ended.output.strip()[-2000:]}"}
    if ended.code == UNAVAILABLE:
        return {"found": "no fault in what could run", "refused": ended.reason()}
    return {"found": "no fault"} if ended.code == 0 else {"error": ended.reason()}


def given_up(journal: Journal) -> set[str]:
    """Return the ways that have failed several times and never worked: further tries would only cost time."""
    failures, others = Counter(), Counter()
    for record in journal.lines:
        (failures if record["kind"] == "failed" else others)[way(record)] += 1
    return {name for name, count in failures.items() if count >= GIVEN_UP and name not in others}


def write_requests(folder: Path, lines: list[dict]) -> Path:
    """Write a file of requests and return it."""
    path = folder / "requests.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    return path
