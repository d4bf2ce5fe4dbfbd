"""Waits for ranks that are late to a collective call: reported, never cut short. As `comm/patience.hpp` of the library does it."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import termios
import time
from typing import TYPE_CHECKING

from haloscope import terminal

if TYPE_CHECKING:
    from mpi4py import MPI

DEFAULT_S = 30.0
_POLLS = 2000  # before the first rest: about a millisecond
_REST_S = 1e-4
_PASSED_ON_S = 0.3  # what a launcher needs
_LONGEST_READ_S = 5  # it may have stopped


def patience_s() -> float:
    """Return the seconds between two reports: HALOSCOPE_PATIENCE, where it is a number of seconds; 0: there are none."""
    try:
        seconds = float(os.environ.get("HALOSCOPE_PATIENCE") or DEFAULT_S)
    except ValueError:
        return DEFAULT_S
    return seconds if seconds >= 0 else DEFAULT_S


def complete(request: MPI.Request, call: str) -> None:
    """Wait until a nonblocking collective call is complete. Reports on standard error while other ranks have not come to it.

    call: its name, as "the call that makes an exchange". Where HALOSCOPE_STALL is "end", the first report ends the job.
    """
    begin = reported = time.monotonic()
    patience, polls = patience_s(), 0
    while not request.Test():
        polls += 1
        if polls < _POLLS:
            continue
        time.sleep(_REST_S)
        now = time.monotonic()
        if 0 < patience <= now - reported:
            reported = now
            _report(f"has waited for {now - begin:.0f} s: other ranks have not come to {call}")


def _report(text: str) -> None:
    from mpi4py import MPI

    ends = os.environ.get("HALOSCOPE_STALL") == "end"
    rank = MPI.COMM_WORLD.rank
    terminal.say(f"rank {rank}: {text}; HALOSCOPE_STALL=end ends the job" if ends else f"rank {rank} {text}")
    if ends:
        end_job()


def end_job() -> None:
    """End all ranks, once launchers have passed on the output, which they drop just before an abort."""
    from mpi4py import MPI

    sys.stderr.flush()
    deadline = time.monotonic() + _LONGEST_READ_S
    everything = False
    while not everything and time.monotonic() < deadline:
        everything = _unread(1) + _unread(2) == 0
        time.sleep(_PASSED_ON_S)
    MPI.COMM_WORLD.Abort(1)


def _unread(file: int) -> int:
    """Return how many bytes in the pipe FILE nobody has read yet; 0: FILE is no pipe."""
    try:
        if not stat.S_ISFIFO(os.fstat(file).st_mode):
            return 0
        return int.from_bytes(fcntl.ioctl(file, termios.FIONREAD, bytes(4)), sys.byteorder)
    except OSError:
        return 0
