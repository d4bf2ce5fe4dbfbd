"""Waits for late programs: reported, never cut short, like waits for ranks in the library's `comm/patience.hpp`."""

from __future__ import annotations

import math
import os
import subprocess
import time

from haloscope import terminal

DEFAULT_S = 30.0
_SHORT_S = 1  # at the end of a wait with a limit, without reports


def patience_s() -> float:
    """Return the seconds between two reports: HALOSCOPE_PATIENCE, where that is a number; 0: no reports."""
    try:
        seconds = float(os.environ.get("HALOSCOPE_PATIENCE") or DEFAULT_S)
    except ValueError:
        return DEFAULT_S
    return seconds if seconds >= 0 else DEFAULT_S


class Wait:
    """A wait that is reported on standard error every `patience_s()` seconds."""

    def __init__(self) -> None:
        """Begin the wait."""
        self._begin = self._reported = time.monotonic()
        self._patience = patience_s()

    def left_s(self) -> float:
        """Return the seconds to the next report."""
        return max(0.0, self._reported + self._patience - time.monotonic()) if self._patience else math.inf

    def is_due(self) -> bool:
        """Return whether a report is due, and count it as made."""
        due = self.left_s() == 0
        self._reported = time.monotonic() if due else self._reported
        return due

    def report(self, late: str, remedy: str = "") -> None:
        """Report that something is late. late: "./heat has not ended". remedy: an action for the user."""
        waited = time.monotonic() - self._begin
        terminal.say(f"{late} after {waited:.0f} s; the wait goes on{'; ' * bool(remedy)}{remedy}")


def ended(process: subprocess.Popen, name: str, limit_s: float = math.inf, remedy: str = "") -> bool:
    """Wait until a process has ended; return whether it did within `limit_s` seconds. Reports as `Wait`.

    name: of the process, for reports. remedy: as for `Wait.report`.
    """
    wait, deadline = Wait(), time.monotonic() + limit_s
    while (left := deadline - time.monotonic()) > 0:
        try:
            process.wait(timeout=min(left, wait.left_s()))
        except subprocess.TimeoutExpired:
            if wait.is_due() and time.monotonic() < deadline - _SHORT_S:
                wait.report(f"{name} has not ended", remedy)
        else:
            return True
    return False
