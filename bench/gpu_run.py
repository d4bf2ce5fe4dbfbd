"""Processes and results of bench/gpu.py: everything ends by one deadline, each process and each case by a separate
limit, and each result is written immediately. The module imports only the standard library, because nothing else exists
on the machine with the device."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MARK = "HALOSCOPE_GPU_RUN"  # in the environment of all processes of a run: the folder of its results
SHOWN = 60  # last lines of a program's output that are printed if it fails


class Trouble(Exception):
    """A fault that ends the whole run; its text is a sentence."""


class Deadline:
    """The time at which everything has to be over."""

    def __init__(self, seconds: float):
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds until the deadline."""
        return self.end - time.monotonic()

    def share(self, part: float) -> Deadline:
        """Return an earlier deadline, after a part of the time that is left."""
        return Deadline(max(0.0, part * self.left()))

    def has_cut(self, ended: Ended) -> bool:
        """Return whether this deadline ended a process: its case has no result then."""
        return ended.code is None and self.left() <= 0


class Log:
    """Messages of a run, printed and written to a file. Output of programs goes to the file only; its end is printed
    for a failing program.
    """

    def __init__(self, path: Path):
        self.begin = time.monotonic()
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def say(self, text: str) -> None:
        """Print a message with the time, and write it to the file."""
        text = f"[{time.monotonic() - self.begin:5.0f} s] {text}"
        print(text, flush=True)
        self.keep(text)

    def keep(self, text: str) -> None:
        """Write a text to the file only."""
        with self.path.open("a") as file:
            file.write(text.rstrip() + "\n")

    def show_end(self, text: str) -> None:
        """Print the last lines of a program's output."""
        print("\n".join(text.splitlines()[-SHOWN:]), file=sys.stderr, flush=True)


# ---- processes -------------------------------------------------------------------------------------------------------


@dataclass
class Ended:
    """The code and the output of an ended process. code: None where its time was up; negative: the signal."""

    code: int | None
    output: str

    def reason(self) -> str:
        """Return a text with the reason why the process has no result."""
        how = "its time was up" if self.code is None else f"ended with code {self.code}"
        if self.code is not None and self.code < 0:
            how = f"ended by signal {signal.Signals(-self.code).name}"
        return f"{how}: {self.output.strip()[-2000:]}".rstrip(": ")

    def lines(self) -> list[dict]:
        """Return the JSON lines of its output, which may contain other lines, such as warnings of a driver."""
        return [json.loads(text) for text in self.output.splitlines() if text.startswith("{")]


def run(
    words: Iterable[str | Path],
    limit_s: float,
    environment: Mapping[str, str],
    mark: Path,
    progress: Callable[[], object] = lambda: None,
    until: Deadline | None = None,
) -> Ended:
    """Run a program, and end all processes that it started.

    limit_s: seconds from the start, or from the last change of progress(); until: the latest end in any case.
    """
    with tempfile.TemporaryFile() as output:
        whole = os.environ | environment | {MARK: str(mark)}
        process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=whole,
            start_new_session=True,
        )
        try:
            code = wait(process, limit_s, progress, until)
        finally:
            end_group(process)
            end_leftovers(mark)
        output.seek(0)
        return Ended(code, output.read().decode(errors="replace"))


def wait(
    process: subprocess.Popen, limit_s: float, progress: Callable[[], object], until: Deadline | None
) -> int | None:
    """Return the code of a process; None if it took too long."""
    last, end, pause = progress(), time.monotonic() + limit_s, 0.002
    while True:
        try:
            return process.wait(timeout=pause)
        except subprocess.TimeoutExpired:
            pause = min(2 * pause, 0.05)
        now = progress()
        if now != last:
            last, end = now, time.monotonic() + limit_s
        if time.monotonic() > end or (until and until.left() < 0):
            return None


def end_group(process: subprocess.Popen) -> None:
    """End a process and its group if it still runs: SIGTERM comes first, so that mpiexec ends its ranks."""
    for how, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        if process.poll() is None:
            os.killpg(process.pid, how)
            try:
                process.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                continue


def end_leftovers(mark: Path, name: str = MARK) -> None:
    """End orphaned processes, such as ranks whose mpiexec was killed: all with variable `name` set to `mark`."""
    until = time.monotonic() + 5
    while kill_leftovers(f"{name}={mark}".encode()) and time.monotonic() < until:
        time.sleep(0.005)


def kill_leftovers(sign: bytes) -> bool:
    """Kill all processes with `sign` in their environment, except this one; return whether any existed."""
    found = False
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = sign in (folder / "environ").read_bytes().split(b"\0")
            if ours and int(folder.name) != os.getpid():
                found = True
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:  # it has ended, or belongs to another user
            continue
    return found


# ---- results ---------------------------------------------------------------------------------------------------------


class Journal:
    """A file of results, one per line, that only grows. Programs append to it too; at most its last line is partial
    after a kill, and it is repaired.
    """

    def __init__(self, path: Path, key: str, mends: bool = True):
        self.path, self.key = path, key
        self.lines: list[dict] = []
        self.done: dict[str, dict] = {}
        self.read = 0
        self.refresh()
        if (
            mends
            and self.path.exists()
            and (self.ends_within_a_line() or self.path.read_bytes().count(b"\n") != len(self.lines))
        ):
            self.drop(lambda line: False)

    def ends_within_a_line(self) -> bool:
        """Return whether the last line is partial, because its writer was killed."""
        return self.size() > 0 and not self.path.read_bytes().endswith(b"\n")

    def refresh(self) -> None:
        """Read the lines that other processes have appended."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.read)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self.read += len(new)
        for text in new.splitlines():
            try:
                line = json.loads(text)
            except ValueError:  # a writer was killed, and another one continued
                continue
            self.lines.append(line)
            self.done[line[self.key]] = line

    def append(self, line: dict) -> None:
        """Add a line; it is on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = json.dumps(line).encode() + b"\n"
        with self.path.open("ab", buffering=0) as file:
            file.write(b"\n" + whole if self.ends_within_a_line() else whole)
            os.fsync(file.fileno())
        self.refresh()

    def size(self) -> int:
        """Return the current number of bytes of the file."""
        return self.path.stat().st_size if self.path.exists() else 0

    def drop(self, unwanted: Callable[[dict], bool]) -> None:
        """Remove some lines, so that their cases are run again."""
        kept = [line for line in self.lines if not unwanted(line)]
        whole = b"".join(json.dumps(line).encode() + b"\n" for line in kept)
        beside = self.path.with_suffix(".new")
        beside.write_bytes(whole)
        beside.replace(self.path)
        self.read, self.lines, self.done = len(whole), kept, {line[self.key]: line for line in kept}


def outcome(line: dict, verified: bool = False) -> str:
    """Return the outcome of a case: good, refused (impossible here), failed (it crashed or took too long), or wrong.

    verified: without a passed verification, the case is wrong.
    """
    if "error" in line or line.get("kind") == "failed":
        return "failed"
    if "refused" in line or line.get("kind") == "skipped":
        return "refused"
    status = line.get("verification", {}).get("status")
    return "wrong" if status == "failed" or (verified and status != "passed") else "good"
