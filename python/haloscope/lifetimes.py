"""Ends of exchanges: all ranks together free those that a program drops, and a rank that fails ends the job."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from haloscope import ranks
from haloscope.bridge.once import once
from haloscope.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from mpi4py import MPI


class Unique:
    """An object of one process and communicator; copies would share its handles."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse copies: copy.copy(), copy.deepcopy() and pickle call this."""
        name = type(self).__name__
        raise UsageError(
            f"{name} can be neither copied nor pickled, since it belongs to the ranks of a communicator; pass it on "
            "as it is, or make another one on all ranks"
        )


class Dropped:
    """Exchanges on one communicator that a program has dropped without free(), by the number of their opening.

    Freeing is collective but garbage collection runs at any time, so dropped exchanges wait for the next collective
    call.
    """

    def __init__(self) -> None:
        self._opened = 0
        self._watched: dict[int, tuple[Callable[[], object], Any, weakref.ref[Any]]] = {}
        self._waiting: dict[int, tuple[Callable[[], object], Any]] = {}
        self._lock = threading.RLock()  # garbage collection may run while a lock is held

    @classmethod
    def on(cls, comm: MPI.Comm) -> Dropped:
        """Return the dropped exchanges of a communicator. Local; call it in work that ranks agree on."""
        found: Dropped | None = ranks.checked(comm.Get_attr, _key())
        if found is None:
            found = cls()
            ranks.checked(comm.Set_attr, _key(), found)
        return found

    def watch(self, exchange: Any, free: Callable[[], object], kept: Any) -> Callable[[], Any]:
        """Watch for the garbage collection of an exchange; return a function that ends the watch. Local.

        weakref.finalize() is not used, because it drops all objects at exit, and exit handlers of the program may run
        after that.

        free: frees the exchange. kept: stays alive until then, as its arrays must.
        """
        self._opened += 1
        number = self._opened
        watch = weakref.ref(exchange, lambda _: self._drop(number))
        self._watched[number] = (free, kept, watch)
        return lambda: self._watched.pop(number)

    def waiting(self) -> dict[int, Any]:
        """Return end and kept object of each exchange that waits now, by the number of its opening. Local."""
        with self._lock:
            return dict(self._waiting)

    def free(self, comm: MPI.Comm, waiting: dict[int, Any], counts: np.ndarray) -> None:
        """Free the exchanges that all ranks have dropped, in the order of opening. Collective.

        An exchange whose end raises keeps waiting.
        waiting: the result of waiting(). counts: its length on each rank; where any is 0, no exchange is freed.
        """
        if counts.min() == 0:
            return
        numbers = ranks.gather(comm, "an exchange", [*waiting, *[0] * (counts.max() - len(waiting))])  # 0: none
        for number in sorted(set.intersection(*map(set, numbers.tolist())) & waiting.keys()):
            waiting[number][0]()
            with self._lock:
                del self._waiting[number]

    def _drop(self, number: int) -> None:
        free, kept, _ = self._watched.pop(number)
        with self._lock:
            self._waiting[number] = (free, kept)


@once
def _key() -> int:
    from mpi4py import MPI

    return int(ranks.checked(MPI.Comm.Create_keyval))


class Freeable(Unique):
    """An object that all ranks free together; a context manager."""

    def free(self) -> None:
        """Release it. Collective."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Return it; it is freed at the end of the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Free it. After an exception, other ranks may not free it, so it stays open like a dropped one."""
        if kind is None:
            self.free()


class Opened(Freeable):
    """An exchange or a redistribution, from its opening to its end."""

    _kind = "exchange"  # in the names of C's functions, hs_exchange_free

    def _begin(self, handle: Any, dropped: Dropped, ranks_of_comm: int, kept: Any) -> None:
        """Take over a handle of C. kept: stays alive until it is freed."""
        self._handle = handle
        function = f"hs_{self._kind}_free"
        self._forget = dropped.watch(self, lambda: ranks.call(function, handle), kept)
        end_job_where_a_rank_fails(self, ranks_of_comm)

    def report(self) -> str:
        """Return one line: the strategy that moves points, the messages of this rank, and the choice of `auto`."""
        ffi, _ = ranks.library()
        result = ffi.new("const char**")
        ranks.call(f"hs_{self._kind}_report", self._open(), result)
        return str(ffi.string(result[0]).decode())

    def free(self) -> None:
        """Release it. Collective: ranks may wait for each other, and free exchanges in the same order.

        One that is dropped without free() is freed when the next one on its communicator is opened. Where the call is
        refused, as on a thread that may not call MPI, it stays open and can be freed later.
        """
        if self._handle is not None:
            ranks.call(f"hs_{self._kind}_free", self._handle)
            self._handle = None
            self._forget()
            is_closed(self)

    def _open(self) -> Any:
        if self._handle is None:
            raise UsageError(f"the {self._kind} was freed; open another one")
        return self._handle

    def _number(self) -> int:
        """Return the handle as a number of 64 bits, for compiled programs. It is never used again after free()."""
        return int(ranks.library()[0].cast("intptr_t", self._open()))


_open: weakref.WeakSet[Any] = weakref.WeakSet()


def end_job_where_a_rank_fails(exchange: Any, ranks_of_comm: int) -> None:
    """End the job at an uncaught exception while this exchange is open, if it has several ranks. Local.

    Other ranks would wait for messages of the rank that fails. The traceback is printed first. Interactive sessions
    continue.
    """
    if ranks_of_comm > 1:
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
