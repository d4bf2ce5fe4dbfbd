"""Grids and exchanges whose n-th allocation fails raise an error about memory on all ranks; with memory there they open
again.

Run by ranks: `mpiexec -n N python exhausted_memory.py STRATEGY STEP`, with the library that fails allocations
preloaded.
"""

from __future__ import annotations

import ctypes
import itertools
import sys

import numpy as np
from mpi4py import MPI

import haloscope
from haloscope.errors import HaloscopeError

FAULTS = ctypes.CDLL(None)
FAULTS.fail_allocations.argtypes = [ctypes.c_long, ctypes.c_long]
FAULTS.failed_allocations.restype = ctypes.c_long
COMM = MPI.COMM_WORLD
CELLS = (12, 10)


def exchange(strategy: str) -> bool:
    """Return whether the halos of a new exchange are right."""
    with_halos = np.pad(np.arange(CELLS[0] * CELLS[1], dtype=float).reshape(CELLS), 1, mode="wrap")
    comm = COMM.Dup()
    FAULTS.count_allocations(1)
    try:
        grid = haloscope.Grid(comm, CELLS, periodic=True)
        field = grid.zeros(1)
        field[grid.inner(1)] = with_halos[1:-1, 1:-1][grid.owned]
        halo = haloscope.Exchange(grid, [field], 1, strategy=strategy)
        halo()
        halo.free()
    finally:
        FAULTS.count_allocations(0)
        comm.Free()
    return bool((field == with_halos[tuple(slice(own.start, own.stop + 2) for own in grid.owned)]).all())


def error_of(strategy: str) -> str:
    """Return the text of the error that an exchange ends with; "" where it has right halos."""
    try:
        right = exchange(strategy)
    except HaloscopeError as error:
        return str(error)
    return "" if right else "wrong halos"


def main() -> None:
    strategy, step = sys.argv[1], int(sys.argv[2])
    FAULTS.fail_allocations(0, -1)
    assert exchange(strategy)  # what is made once a process is there from now on
    refused = 0
    for number in itertools.count(1, step):
        FAULTS.fail_allocations(number, number)
        error = error_of(strategy)
        assert error == "" or "memory is exhausted" in error, error
        refused += error != ""
        failed = COMM.allreduce(FAULTS.failed_allocations())
        FAULTS.fail_allocations(0, -1)
        assert exchange(strategy), number
        if failed == 0:
            break
    assert refused > 0
    if COMM.rank == 0:
        print("refused")


main()
