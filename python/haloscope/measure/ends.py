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
        # The processes that ended during a wait or were found ended by the watches after it, by wait. The order within
        # one set is unknown; the last set may be empty.
        self.order: list[set[int]] = [set()]
        self._poll = select.poll()
        self._descriptors: dict[int, int] = {}  # of each watched process
        self._found_ended: set[int] = set()  # without having been watched
        self._launcher = launcher
        self.watch([launcher])

    def __contains__(self, pid: int) -> bool:
        """Return whether a process is or was watched, or has a place in the order."""
        return pid in self._descriptors or pid in self._found_ended

    def watch(self, alive: Iterable[int], ended: Iterable[int] = ()) -> None:
        """Watch processes that are alive, and note those that ended before they could be watched."""
        for pid in alive:
            if pid not in self:
                with contextlib.suppress(OSError):
                    self._descriptors[pid] = os.pidfd_open(pid)
                    self._poll.register(self._descriptors[pid], select.POLLIN)
        late = {pid for pid in ended if pid not in self}
        self._found_ended |= late
        self.order[-1] |= late

    def wait(self, seconds: float) -> None:
        """Wait until a watched process ends, at most `seconds`."""
        ended = {descriptor for descriptor, _ in self._poll.poll(1000 * seconds)}
        for descriptor in ended:
            self._poll.unregister(descriptor)
        if self.order[-1]:
            self.order.append(set())
        self.order[-1] |= {pid for pid, descriptor in self._descriptors.items() if descriptor in ended}
        self.order[-1].discard(self._launcher)

    def close(self) -> None:
        """Note the ends that no wait has seen, and close the descriptors."""
        self.wait(0)
        for descriptor in self._descriptors.values():
            os.close(descriptor)
