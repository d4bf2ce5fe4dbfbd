"""Calls of exchanges inside functions of Numba: the bits of plain calls, errors, other threads.

Run by ranks: `mpiexec -n N python numba_calls.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from mpi4py import MPI

import haloscope
import haloscope.numba
from haloscope.errors import UsageError
from haloscope.numba import accumulate, finish, handle, run, start, start_accumulate

COMM = MPI.COMM_WORLD
STEPS = 20


@numba.njit
def sweep(new: np.ndarray, old: np.ndarray) -> None:
    for j in range(1, new.shape[0] - 1):
        for i in range(1, new.shape[1] - 1):
            new[j, i] = 0.5 * old[j, i] + 0.125 * (old[j - 1, i] + old[j + 1, i] + old[j, i - 1] + old[j, i + 1])


@numba.njit
def advance(number: int, u: np.ndarray, v: np.ndarray, steps: int) -> None:
    for step in range(steps):
        if step % 4 < 2:
            run(number, step % 2)
        else:
            start(number, step % 2)
            finish(number)
        if step % 2 == 0:
            sweep(v, u)
        else:
            sweep(u, v)


@numba.njit
def add_twice(number: int) -> None:
    accumulate(number)
    start_accumulate(number, 1)
    finish(number)


@numba.njit
def call(number: int, slot: int) -> None:
    run(number, slot)


@numba.njit(nogil=True)
def call_without_lock(number: int) -> None:
    run(number)


@numba.njit
def finish_only(number: int) -> None:
    finish(number)


def opened(**options: Any) -> tuple[haloscope.Exchange, np.ndarray, np.ndarray]:
    grid = haloscope.Grid(COMM, (4 * COMM.size, 7), periodic=(True, False))
    draw = np.random.default_rng(COMM.rank)
    u, v = (draw.random(grid.zeros().shape) for _ in range(2))
    return haloscope.Exchange(grid, [(u, v)], **options), u, v


def check_bits() -> None:
    """A compiled loop and plain calls give the same bits, in slots, with and without a start of its own."""
    found = []
    for compiled in (True, False):
        halo, u, v = opened(strategy="ordered/p2p")
        with halo:
            if compiled:
                advance(handle(halo), u, v, STEPS)
                add_twice(handle(halo))
            else:
                for step in range(STEPS):
                    halo(step % 2)
                    sweep(*((v, u) if step % 2 == 0 else (u, v)))
                halo.accumulate(0)
                halo.accumulate(1)
        found.append((u.tobytes(), v.tobytes()))
    assert found[0] == found[1]


def refused(part: str, function: Callable, *arguments: Any) -> None:
    with pytest.raises(UsageError) as caught:
        function(*arguments)
    assert part in str(caught.value), str(caught.value)


def check_errors() -> None:
    """A failed call raises the library's error, and the exchange and its program continue."""
    halo, u, v = opened()
    number = handle(halo)
    refused("slot 2 does not exist", call, number, 2)
    refused("slot 5 does not exist", run, number, 5)
    refused("slot 2147483647 does not exist", call, number, 2**32)
    for wrong in (0, 1, 12345, -1, number ^ 1, number + 2**32, 2**63 - 1):
        refused("argument 'exchange'", call, wrong, 0)
    advance(number, u, v, 2)
    halo.free()
    refused("was freed before", call, number, 0)
    refused("was freed before", finish_only, number)
    refused("was freed; open another", handle, halo)
    refused("pass a haloscope.Exchange", handle, u)
    new, *_ = opened()
    assert handle(new) != number
    refused("was freed before", call, number, 0)
    new.free()


def check_lock() -> None:
    """Python runs on in other threads while a call without its lock waits for another rank."""
    halo, *_ = opened(strategy="ordered/p2p")
    with halo:
        call_without_lock(handle(halo))  # is compiled here
        thread = threading.Thread(target=call_without_lock, args=(handle(halo),))
        if COMM.rank > 0:
            thread.start()
            time.sleep(0.05)
            COMM.send("its thread waits", 0)
        else:
            for rank in range(1, COMM.size):
                COMM.recv(source=rank)
            thread.start()
        thread.join()


if __name__ == "__main__":
    check_bits()
    check_errors()
    check_lock()
    if COMM.rank == 0:
        print("right")
