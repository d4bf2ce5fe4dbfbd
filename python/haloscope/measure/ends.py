"""The order in which processes end: evidence of the rank that died first, before mpiexec ended the others."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterable


class Ends:
    """Waits for the ends of processes and keeps their order; where Linux has no pidfd_open, it keeps none."""

    def __init__(self, launcher: int):
        """launcher: the process whose end a wait reports too, without a place in the order."""
        self.order: list[set[int]] = []  # processes that had ended, by wait; the order within a wait is unknown
        self._poll = select.poll()
        self._descriptors: dict[int, int] = {}  # of each watched process
        self._launcher = launcher
        self.watch([launcher])

    def __contains__(self, pid: int) -> bool:
        """Return whether a process is or was watched."""
        return pid in self._descriptors

    def watch(self, processes: Iterable[int]) -> None:
        """Watch processes that are alive; those already watched are left alone."""
        for pid in processes:
            if pid not in self:
                with contextlib.suppress(OSError):
                    self._descriptors[pid] = os.pidfd_open(pid)
                    self._poll.register(self._descriptors[pid], select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Wait until a watched process ends, at most `seconds`."""
        ended = {descriptor for descriptor, _ in self._poll.poll(1000 * seconds)}
        for descriptor in ended:
            self._poll.unregister(descriptor)
        found = {pid for pid, descriptor in self._descriptors.items() if descriptor in ended} - {self._launcher}
        if found:
            self.order.append(found)

    def close(self) -> None:
        """Note the ends that no wait has seen, and close the descriptors."""
        self.wait(0)
        for descriptor in self._descriptors.values():
            os.close(descriptor)
