"""Ends of exchanges: all ranks together free the exchanges that a program drops, and a rank that fails ends the job."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from haloscope import ranks
from haloscope.bridge.once import once

if TYPE_CHECKING:
    import numpy as np
    from mpi4py import MPI


class Dropped:
    """Exchanges on one communicator that a program has dropped without free(), by the number of their opening.

    Freeing is collective but garbage collection runs at any time, so dropped exchanges wait for the next collective
    call.
    """

    def __init__(self) -> None:
        self._opened = 0
        self._watched: dict[int, tuple[Any, Any, weakref.ref[Any]]] = {}
        self._waiting: dict[int, tuple[Any, Any]] = {}
        self._lock = threading.RLock()  # garbage collection may run while a lock is held

    @classmethod
    def on(cls, comm: MPI.Comm) -> Dropped:
        """Return the dropped exchanges of a communicator. Local; call it in work that ranks agree on."""
        found: Dropped | None = ranks.checked(comm.Get_attr, _key())
        if found is None:
            found = cls()
            ranks.checked(comm.Set_attr, _key(), found)
        return found

    def watch(self, exchange: Any, handle: Any, kept: Any) -> Callable[[], Any]:
        """Watch for the garbage collection of an exchange; return a function that ends the watch. Local.

        weakref.finalize() is not used, because it drops all objects at exit, and exit handlers of the program may run
        after that.

        kept: stays alive until the exchange is freed, as its arrays must.
        """
        self._opened += 1
        number = self._opened
        watch = weakref.ref(exchange, lambda _: self._drop(number))
        self._watched[number] = (handle, kept, watch)
        return lambda: self._watched.pop(number)

    def waiting(self) -> dict[int, Any]:
        """Return handle and kept object of each exchange that waits now, by the number of its opening. Local."""
        with self._lock:
            return dict(self._waiting)

    def free(self, comm: MPI.Comm, waiting: dict[int, Any], counts: np.ndarray, free: Callable[[Any], object]) -> None:
        """Free the exchanges that all ranks have dropped, in the order of opening. Collective.

        An exchange for which `free` raises keeps waiting.
        waiting: the result of waiting(). counts: its length on each rank; where any is 0, no exchange is freed.
        """
        if counts.min() == 0:
            return
        numbers = ranks.gather(comm, "an exchange", [*waiting, *[0] * (counts.max() - len(waiting))])  # 0: none
        for number in sorted(set.intersection(*map(set, numbers.tolist())) & waiting.keys()):
            free(waiting[number][0])
            with self._lock:
                del self._waiting[number]

    def _drop(self, number: int) -> None:
        handle, kept, _ = self._watched.pop(number)
        with self._lock:
            self._waiting[number] = (handle, kept)


@once
def _key() -> int:
    from mpi4py import MPI

    return int(ranks.checked(MPI.Comm.Create_keyval))


_open: weakref.WeakSet[Any] = weakref.WeakSet()


def end_job_where_a_rank_fails(exchange: Any) -> None:
    """End the job at an uncaught exception while this exchange is open, if it has several ranks. Local.

    Other ranks would wait for messages of the rank that fails. The traceback is printed first. Interactive sessions
    continue.
    """
    if exchange.grid._size > 1:
        _install()
        _open.add(exchange)


def is_closed(exchange: Any) -> None:
    """Forget an exchange that was freed. Local."""
    _open.discard(exchange)


@once
def _install() -> None:
    usual = sys.excepthook

    def end_job(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        usual(kind, value, trace)
        if _open and not hasattr(sys, "ps1"):
            sys.stderr.flush()
            ranks.end_job(
                "an exception leaves this rank while exchanges are open; the job ends here, since other ranks may "
                "wait for this one"
            )

    sys.excepthook = end_job
