"""An exchange for which the file system of shared memory may be too small is refused by name, or works.

Run by ranks: `mpiexec -n N python small_shared_memory.py STRATEGY`.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

import haloscope
from haloscope.errors import HaloscopeError

COMM = MPI.COMM_WORLD
DEPTH = 4


def right(strategy: str) -> bool:
    grid = haloscope.Grid(COMM, (96, 96, 96), periodic=True)
    fields = [grid.zeros(DEPTH) for _ in range(6)]
    for field in fields:
        field[grid.inner(DEPTH)] = 1
    haloscope.Exchange(grid, fields, DEPTH, strategy=strategy)()
    return min(field.min() for field in fields) == 1


def main() -> str:
    try:
        found = "right" if right(sys.argv[1]) else "wrong"
    except HaloscopeError as error:
        named = "bytes of shared memory, but only" in str(error)
        found = "refused" if named and right("ordered/p2p") else str(error)
    return found


FOUND = main()
if COMM.rank == 0:
    print(FOUND)
