"""Short queries of the rank program: its capabilities, results of probes. Nothing is measured or left running."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from haloscope import patience
from haloscope.bridge import build
from haloscope.errors import USAGE, HaloscopeError, UsageError
from haloscope.measure import hosts, launch
from haloscope.measure.launch import launcher_words, mpiexec
from haloscope.terminal import shown

LIMIT_S = 30.0  # for one rank to start and report its capabilities


def information(folder: Path | None = None) -> dict:
    """Return the program's capabilities: MPI, compiler, transports, schedules. Raises HaloscopeError if it fails.

    folder: the build that contains it; default: the build that Haloscope runs from.
    """
    program = folder / build.RANK_PROGRAM if folder else build.rank_program()
    command = [*launcher_words(mpiexec(folder), 1, 1), str(program), "--info"]
    code, printed, complaint = ended_after(LIMIT_S, command)
    if code is None:
        doubt = f"; is {hosts.names()[0]} a host that is up?" if hosts.names() else ""
        raise HaloscopeError(f"'{' '.join(command)}' gave no answer within {LIMIT_S:g} s{doubt}")
    if code == USAGE and (mark := complaint.rfind("haloscope: ")) >= 0:
        raise UsageError(complaint[mark:].removeprefix("haloscope: ").strip())
    if code:
        why = shown(" / ".join(complaint.split("\n")))
        raise HaloscopeError(f"'{' '.join(command)}' ended with code {code}: {why}")
    answer: dict = json.loads(printed[printed.index("{") :])
    return answer


def quietly(ranks: int, words: Sequence[str], limit_s: float) -> tuple[int | None, str]:
    """Start the program with `words` on some ranks; return mpiexec's exit code (None: it was ended after `limit_s`
    seconds) and its output. Raises UnavailableError without a program or an mpiexec."""
    command = [*launcher_words(mpiexec(), ranks, 1), str(build.rank_program()), *words]
    code, output, _ = ended_after(limit_s, command)
    return code, output


def ended_after(limit_s: float, command: Sequence[str]) -> tuple[int | None, str, str]:
    """Run a command; return its exit code (None: it was ended after `limit_s` seconds), output and error output.

    Until then `patience.ended` reports a command that takes long. None of its processes remain. Raises
    UnavailableError if it cannot be started.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:  # files: a rank may keep a pipe open
        process = launch.start(command, stdout=out, stderr=err)
        try:
            done = patience.ended(process, f"'{' '.join(command)}'", limit_s)
        finally:
            _end_group(process)
        out.seek(0)
        err.seek(0)
        return process.returncode if done else None, out.read(), err.read()


def objects_of(output: str) -> list[dict]:
    """Return the JSON objects of an output, in their order; other text is skipped.

    Objects may share a line if processes write at the same time.
    """
    found, decoder = [], json.JSONDecoder()
    for line in output.splitlines():
        rest = line
        with contextlib.suppress(json.JSONDecodeError):
            while rest.startswith("{"):
                value, end = decoder.raw_decode(rest)
                found.append(value)
                rest = rest[end:].lstrip()
    return found


def _end_group(process: subprocess.Popen) -> None:
    """End a process group: first by SIGTERM, so that mpiexec can end ranks elsewhere, then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        launch.signal_group(process, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=launch.GRACE_S)
