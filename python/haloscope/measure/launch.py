"""Launches of ranks: finds the program and its mpiexec, pins, watches, and ends all processes after a fault."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haloscope import patience, records, scratch
from haloscope.bridge import build
from haloscope.errors import FAILED, UNAVAILABLE, USAGE, UnavailableError, UsageError
from haloscope.measure import faults, host_mapping, hosts
from haloscope.measure.ends import Ends
from haloscope.measure.request import Measurable
from haloscope.model import link

ORDERLY_END_S = 1.0  # from the first rank's end to mpiexec's, when all ends well
POLL_S = 0.2  # long, so that watching does not disturb measurements
_PR_SET_PDEATHSIG = 1
GRACE_S = 3.0  # between SIGTERM and SIGKILL


def cmake_cache(name: str, folder: Path | None = None) -> str:
    """Return an entry of a build's CMakeCache.txt, "" if it is missing; default: the build of the program.

    An installed program has no such file.
    """
    cache = (folder or build.built_rank_program().parent) / "CMakeCache.txt"
    match = re.search(rf"^{name}:[A-Z]+=(.*)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    return match[1] if match else ""


def mpiexec(folder: Path | None = None) -> Path:
    """Return the mpiexec that belongs to the MPI of a build, by default the MPI that the program was built with.

    $HALOSCOPE_MPIEXEC comes first; then the mpiexec next to the build's mpicxx, since the mpiexec of another MPI would
    start single ranks that are not connected; then the mpiexec that CMake found. For an installed program: the first
    mpiexec of its MPI's kind on PATH or next to Python. Raises UnavailableError without any.
    """
    if chosen := os.environ.get("HALOSCOPE_MPIEXEC"):
        if found := shutil.which(chosen):
            return Path(found)
        fault = f"HALOSCOPE_MPIEXEC is '{chosen}', which cannot be executed"
        raise UnavailableError(f"{fault}; give the path of an mpiexec")
    compiler = cmake_cache("MPI_CXX_COMPILER", folder)
    candidates = _beside(Path(compiler)) if compiler else []
    candidates += [Path(p) for p in (cmake_cache("MPIEXEC_EXECUTABLE", folder), shutil.which("mpiexec")) if p]
    candidates.append(Path(sys.executable).parent / "mpiexec")  # MPICH's wheel puts it there
    candidates = [path for path in candidates if os.access(path, os.X_OK)]
    if not candidates:
        raise UnavailableError(
            f"no mpiexec of {build.mpi() or 'an MPI'} found next to the mpicxx of the build, on PATH or next to "
            f"{sys.executable}; install one, or set HALOSCOPE_MPIEXEC to its path"
        )
    if compiler:
        return candidates[0]
    kind = "openmpi" if build.mpi().startswith("Open MPI") else "hydra"
    return next((path for path in candidates if flavour(path) == kind), candidates[0])


def _beside(compiler: Path) -> list[Path]:
    """Return possible mpiexecs next to a compiler.

    Debian has several MPIs in one folder, distinguished by a suffix: mpicxx.openmpi belongs to mpiexec.openmpi.
    """
    suffix = compiler.resolve().suffix
    named = [compiler.resolve().parent / f"mpiexec{suffix}"] if suffix in (".openmpi", ".mpich") else []
    return [*named, compiler.parent / "mpiexec"]


@functools.cache
def output_of(*command: str | Path) -> str:
    """Return the output of a short command, "" if it cannot be run. It runs once."""
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _version(path: Path) -> str:
    return output_of(path, "--version").lower()


def flavour(path: Path) -> str:
    """Return "hydra" (MPICH and relatives), "openmpi", "srun" (Slurm), or "other"."""
    text = _version(path)
    if "hydra" in text:
        return "hydra"
    if text.startswith("slurm "):
        return "srun"
    return "openmpi" if "openrte" in text or "open mpi" in text or "open-mpi" in text else "other"


def cores() -> int:
    """Return the number of cores that ranks may use: on every host, the number that this process may use."""
    return cores_here() * hosts.count()


def cores_here() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def physical_cores() -> int:
    """Return the number of physical cores that this process may use."""
    import psutil

    return min(cores_here(), psutil.cpu_count(logical=False) or cores_here())


def launcher_words(path: Path, ranks: int, threads: int, of_hosts: Sequence[int] = ()) -> list[str]:
    """Return mpiexec's command words for `ranks` ranks of `threads` threads, each rank pinned to its own cores.

    They run on `hosts.names()`, in equal blocks. If cores are too few for all threads, a rank still has its equal
    share; if they are too few for the ranks, nothing is pinned and the operating system schedules. Hosts of an emulated
    cluster have separate cores, and ranks are not pinned further. of_hosts: ranks of each used host instead, unpinned.
    If all ranks are on this machine, they listen only on its loop-back, unless the user sets another interface. Raises
    UnavailableError for `of_hosts` with a launcher of another kind than MPICH's and Open MPI's.
    """
    here = max(of_hosts, default=hosts.ranks_on_one(ranks))
    share = 0 if link.current() or of_hosts else min(threads, cores_here() // here)
    words = [str(path), "-n", str(ranks)]
    kind = flavour(path)
    if kind == "hydra":
        words += _on_hosts(kind, here, of_hosts)
        words += ["-bind-to", f"core:{share}"] if share else []
        words += _to_loopback(kind, path)
    elif kind == "openmpi":
        words += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        words += _on_hosts(kind, here, of_hosts)
        words += _open_mpi_binding(here, share)
        words += ["--oversubscribe"] if here * threads > cores_here() else []
        words += _to_loopback(kind, path)
    elif of_hosts:
        raise UnavailableError("--mapping needs the mpiexec of MPICH or Open MPI; use the options of this launcher")
    elif kind == "srun":
        if names := hosts.names():
            words += [f"--nodes={len(names)}", f"--nodelist={','.join(names)}", f"--ntasks-per-node={here}"]
        words += [f"--cpus-per-task={threads}", "--cpu-bind=cores", "--distribution=block:block"]
    return words


def _on_hosts(kind: str, here: int, of_hosts: Sequence[int]) -> list[str]:
    """Return the words with the hosts and their ranks: `of_hosts`, or `here` on each; none for this machine alone."""
    names = hosts.names()
    if not names:
        return []
    if kind == "hydra" and not of_hosts:
        return ["-hosts", ",".join(names), "-ppn", str(here)]
    counts = of_hosts or [here] * len(names)
    listed = ",".join(f"{name}:{count}" for name, count in zip(names, counts, strict=False))
    return ["-hosts" if kind == "hydra" else "--host", listed]


LOOPBACK = "lo"
# Variables for the interfaces of UCX and libfabric, and parameters of Open MPI, each with one that overrides it.
INTERFACES = {"UCX_NET_DEVICES": "UCX_TLS", "FI_TCP_IFACE": "FI_PROVIDER"}
PARAMETERS = {"btl_tcp_if_include": "btl"}
# For Open MPI 4 and earlier, whose launcher is OpenRTE; the launcher of Open MPI 5 refuses the loop-back.
LAUNCHERS = {"oob_tcp_if_include": "oob"}
# Set in the jobs of batch systems, and where hydra has a file of hosts.
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE", "COBALT_JOBID", "OAR_JOB_ID", "FLUX_JOB_ID")
ELSEWHERE = (*_JOBS, "HYDRA_HOST_FILE")


def _to_loopback(kind: str, path: Path) -> list[str]:
    """Return the words that keep ranks from listening on the network where all of them are on this machine."""
    if hosts.names() or any(name in os.environ for name in ELSEWHERE):
        return []
    own = [name for name, other in INTERFACES.items() if not os.environ.keys() & {name, other}]
    if kind == "hydra":
        return [word for name in own for word in ("-genv", name, LOOPBACK)]
    known = PARAMETERS | (LAUNCHERS if "openrte" in _version(path) else {})
    theirs = [p for p, other in known.items() if not os.environ.keys() & {f"OMPI_MCA_{p}", f"OMPI_MCA_{other}"}]
    words = [word for name in theirs for word in ("--mca", name, LOOPBACK)]
    return words + [word for name in own for word in ("-x", f"{name}={LOOPBACK}")]


def _open_mpi_binding(here: int, share: int) -> list[str]:
    """Return the binding options of Open MPI, which by default counts physical cores and refuses more ranks than those.

    here: ranks of a host.
    """
    if not share:
        return ["--bind-to", "none"]
    unit = "core" if here * share <= physical_cores() else "hwthread"
    smt = ["--use-hwthread-cpus"] if unit == "hwthread" else []
    return [*smt, "--map-by", f"slot:PE={share}", "--bind-to", unit]


@dataclass
class Job:
    """One start of mpiexec: requests for one rank count, served in order, into one record file."""

    requests: Sequence[Measurable]
    output: Path
    launch_id: str
    watchdog_s: float = 0.0
    inject: str = ""
    findings: dict | None = None  # of the probes, for the records
    limit_s: float = math.inf  # wall time after which the ranks are ended

    @property
    def ranks(self) -> int:
        """Ranks of every request."""
        return self.requests[0].ranks

    def command(self, folder: Path) -> list[str]:
        """Write the requests file into `folder` and return the whole command."""
        lines = folder / "requests.jsonl"
        lines.write_text("".join(json.dumps(r.line()) + "\n" for r in self.requests))
        threads = max(r.threads for r in self.requests)
        mapping = host_mapping.current()
        words = [
            *launcher_words(
                mpiexec(), self.ranks, threads, mapping.of_hosts(self.ranks, hosts.count()) if mapping else ()
            ),
            # Hydra ends the others as soon as one rank dies, and may report one of them; here the launcher finds the
            # first. With this option and several hosts, hydra signals ranks that have already ended, and fails.
            *(["-disable-auto-cleanup"] if flavour(mpiexec()) == "hydra" and not hosts.names() else []),
            *(mapping.start_words(self.ranks, folder) if mapping else ()),
            str(build.rank_program()),
            "--output",
            str(self.output),
        ]
        words += ["--status", str(folder / "board"), "--launch-id", self.launch_id, "--expect-ranks", str(self.ranks)]
        words += ["--watchdog", f"{self.watchdog_s:g}"] if self.watchdog_s else []
        words += ["--inject", self.inject] if self.inject else []
        if self.findings:
            (folder / "findings").write_text(json.dumps(self.findings))
            words += ["--findings", str(folder / "findings")]
        return [*words, "--requests", str(lines)]


@dataclass
class Outcome:
    """The end of one start of mpiexec."""

    returncode: int
    records: list[dict] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)  # the ranks' messages for the user
    log: list[str] = field(default_factory=list)  # everything printed
    fault: faults.Fault | None = None

    @property
    def exit_code(self) -> int:
        """The ranks' exit code if it is USAGE or UNAVAILABLE, else FAILED."""
        return self.returncode if self.returncode in (USAGE, UNAVAILABLE) else FAILED

    @property
    def last_words(self) -> str:
        """The end of the output, on one line."""
        return " / ".join(line for line in self.log[-5:] if line.strip()) or "it printed nothing"


def _end_with_parent() -> None:
    """In the child: have Linux end mpiexec, and so all ranks, when this process is killed outright."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def start(command: Sequence[str], remedy: str = "set HALOSCOPE_MPIEXEC", **options: Any) -> subprocess.Popen:
    """Start mpiexec without input, in a separate process group, which ends with this process.

    options: of subprocess.Popen. Raises UnavailableError, with the remedy, if it cannot be started.
    """
    alone: dict[str, Any] = {"stdin": subprocess.DEVNULL, "start_new_session": True}
    try:  # preexec_fn makes one system call and takes no lock
        return subprocess.Popen(command, preexec_fn=_end_with_parent, **alone, **options)  # noqa: PLW1509
    except OSError as error:
        raise UnavailableError(f"cannot start {command[0]}: {error.strerror}; {remedy}") from None


def signal_group(process: subprocess.Popen, number: int) -> None:
    """Send a signal to the process group of `start`, if it exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def terminated_is_interrupted() -> AbstractContextManager[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that ranks are not orphaned."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    return handling(dict.fromkeys((signal.SIGTERM, signal.SIGHUP), interrupt) if in_main else {})


@contextlib.contextmanager
def handling(handlers: Mapping[int, Any]) -> Iterator[None]:
    """Have functions handle signals, by number, while the context lasts."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Watched:
    """A running mpiexec in a separate process group; a thread gathers its output."""

    def __init__(self, command: list[str], board: Path):
        self.board_path = board
        self.log: list[str] = []
        self.dead: list[faults.Slot] = []  # ranks found dead while mpiexec was still running
        self.timed_out = False
        self.process = start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.ends = Ends(self.process.pid)
        self._reader = threading.Thread(target=self._gather, daemon=True)
        self._reader.start()
        self._started = time.monotonic()

    def _gather(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.log.append(line.rstrip("\n"))
            if faults.reports_a_wait(line):
                sys.stderr.write(line)

    def seconds(self) -> float:
        """Wall time since the start."""
        return time.monotonic() - self._started

    def running(self) -> bool:
        """Wait a moment; return False if mpiexec has ended."""
        self.ends.wait(POLL_S)
        return self.process.poll() is None and not self._a_rank_died()

    def _a_rank_died(self) -> bool:
        """End mpiexec if a rank's process is gone and mpiexec continues: the others would wait for it indefinitely."""
        dead = self._watch_ranks()
        if not dead:
            return False
        try:
            self.process.wait(timeout=ORDERLY_END_S)  # the ranks may all be on their way out
        except subprocess.TimeoutExpired:
            self.dead = dead
            self.end()
        return True

    def _watch_ranks(self) -> list[faults.Slot]:
        """Watch the ranks that have begun. Returns those that are dead."""
        board = faults.read_board(self.board_path)
        dead = faults.dead_ranks(board, build.rank_program().name)
        ended = {slot.pid for slot in dead}
        self.ends.watch((s.pid for s in board if s.pid > 0 and s.phase != "done" and s.pid not in ended), ended)
        return dead

    def end(self) -> None:
        """End mpiexec and every rank: first by SIGINT and SIGTERM, then by force."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                signal_group(self.process, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(timeout=GRACE_S)
        signal_group(self.process, signal.SIGKILL)
        for rank in faults.still_running(faults.read_board(self.board_path), build.rank_program().name):
            rank.kill()

    def finish(self) -> int:
        """Collect the last output and make sure that nothing is left running. Returns mpiexec's exit code."""
        self._watch_ranks()
        self.ends.close()
        self.end()
        self._reader.join(timeout=GRACE_S)
        return self.process.returncode


def run(job: Job, on_record: Callable[[dict], None] = lambda record: None) -> Outcome:
    """Start the ranks, pass each finished record to `on_record`, and return the outcome; nothing is left running.

    Ctrl-C ends all ranks and is passed on. `patience.Wait` reports a request that takes long. A rank that failed, died
    or got stuck is named in `outcome.fault`, and in a `failed` record in the record file.
    """
    records.prepare(job.output)
    tail = records.Tail(job.output)
    outcome = Outcome(FAILED)

    def collect() -> bool:
        found = tail.new()
        outcome.records += found
        for record in found:
            on_record(record)
        return bool(found)

    with terminated_is_interrupted(), scratch.folder() as folder:
        board_path = folder / "board"
        watched = _Watched(job.command(folder), board_path)
        wait = patience.Wait()
        try:
            while watched.running():
                if collect():
                    wait = patience.Wait()
                if wait.is_due():
                    wait.report(*_late(job, board_path))
                if watched.seconds() > job.limit_s:
                    watched.timed_out = True
                    break
        finally:
            outcome.returncode = watched.finish()
            records.prepare(job.output)  # a rank ended in the middle of a line
            board = faults.read_board(board_path)
        collect()
        outcome.log = watched.log
        outcome.messages = _messages(watched.log)
        outcome.fault = faults.diagnose(board, watched.log, outcome.returncode, watched.dead, watched.ends.order)
        if watched.timed_out:
            outcome.fault = faults.Fault(f"not done after {job.limit_s:g} s, so it was ended")
    if outcome.fault:
        late = job.requests[_order_of(job, outcome.fault.order)]
        records.append(job.output, [records.failed(late, outcome.fault, job.launch_id)])
    return outcome


def _late(job: Job, board_path: Path) -> tuple[str, str]:
    """Return the missing result as text, and the position of the ranks or a hint for the user."""
    board = faults.read_board(board_path)
    if not board:
        return f"no rank of {job.requests[0].id} has appeared", f"is {mpiexec()} the right mpiexec?"
    return f"{job.requests[_order_of(job, board[0].order)].id} has not been measured", f"rank 0 is {board[0].place()}"


def _order_of(job: Job, order: int | None) -> int:
    """Return the index of the request that a rank names; 0 if it names none."""
    return order if order is not None and 0 <= order < len(job.requests) else 0


def _messages(log: Sequence[str]) -> list[str]:
    """Return the ranks' messages for the user, each once: all ranks may print the same."""
    spoken = [line for line in log if line.startswith("haloscope:") and not faults.reports_a_wait(line)]
    return list(dict.fromkeys(line.removeprefix("haloscope:").strip() for line in spoken))


def require_ranks(ranks: int) -> None:
    """Refuse a rank count below 1. Raises UsageError."""
    if ranks < 1:
        raise UsageError(f"--ranks {ranks} is not possible; use 1 or more")
