"""Calls of an exchange inside functions that Numba compiles.

    halo = haloscope.Exchange(grid, [u])
    number = haloscope.numba.handle(halo)

    @numba.njit
    def advance(number, u, steps):
        for _ in range(steps):
            haloscope.numba.run(number)
            sweep(u)

The calls take the number of an exchange, so that Numba compiles a function once for all exchanges. The arrays are those
of the opening, or of the last `Exchange.rebind()`. The program keeps the exchange, since a number keeps no object
alive. A call that fails raises the library's error, as the methods of `Exchange` do; a number of an exchange that was
freed is such a failure. Numba holds Python's global lock during a call, and releases it in functions that it compiles
with `nogil=True`.
"""

from __future__ import annotations

import ctypes
from typing import Any

from haloscope.arguments import shown
from haloscope.bridge import capi
from haloscope.errors import UnavailableError, UsageError
from haloscope.exchange import Exchange
from haloscope.ranks import address, library

try:
    import numba
except ImportError:
    raise UnavailableError("Numba is not installed; install it with: pip install 'numba>=0.60'") from None


LARGEST = 2**31 - 1  # of a slot's number


def handle(exchange: Exchange) -> int:
    """Return the number of an open exchange, for the calls below. Local.

    Raises UsageError for other objects, and for an exchange that was freed.
    """
    if not isinstance(exchange, Exchange):
        raise UsageError(f"a handle of {shown(exchange)}; pass a haloscope.Exchange")
    return exchange._number()


def _function(name: str, *types: Any) -> Any:
    """Return a function of the library that returns a status, in the form that Numba calls."""
    return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address(name))


def _raise(status: int) -> None:
    """Raise the error of this thread's last call."""
    capi.check(library(), status)


@numba.njit
def _check(status: int) -> None:
    """Raise the error of a call that failed."""
    if status != 0:
        with numba.objmode():
            _raise(status)


def _of_slot(name: str, text: str) -> Any:
    """Return a compiled function that calls a function of the library with a handle and a slot."""
    function = _function(name, ctypes.c_int64, ctypes.c_int32)

    @numba.njit
    def call(number: int, slot: int = 0) -> None:
        _check(function(number, min(max(slot, -1), LARGEST)))  # Numba would cut off the upper half of a larger one

    call.__doc__ = text
    return call


_finish = _function("hs_exchange_finish", ctypes.c_int64)

run = _of_slot("hs_exchange_run", "Fill the halos of a slot of exchange `number`, as Exchange() does.")
start = _of_slot("hs_exchange_start", "Start to fill the halos of a slot, as Exchange.start() does.")
accumulate = _of_slot("hs_exchange_accumulate", "Add the halos of a slot to their owners, as Exchange.accumulate().")
start_accumulate = _of_slot("hs_exchange_start_accumulate", "Start to do so, as Exchange.start_accumulate().")


@numba.njit
def finish(number: int) -> None:
    """Wait until the call that was started has ended, as Exchange.finish() does."""
    _check(_finish(number))
