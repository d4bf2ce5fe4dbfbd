"""Exchanges by `auto` that find damaged files of a choice in the cache: their halos are right whatever such a file
holds.

Run by ranks, with an empty folder as HALOSCOPE_CACHE: rank 0 prints what is kept, then reads such files from standard
input, one a line in hexadecimal digits, and prints for each whether its choice was "known" or is "new".
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import haloscope

MOST_EXCHANGES = 2000
CELLS = (16, 16)
comm = MPI.COMM_WORLD


def exchanged(count: int) -> str:
    """Exchange `count` times, or until the choice is made; return whether it was cached. AssertionError: halos are
    wrong.
    """
    grid = haloscope.Grid(comm, CELLS, periodic=True)
    field = grid.zeros()
    exchange = haloscope.Exchange(grid, [field])
    known = "was chosen on 20" in exchange.report()
    inside = np.random.default_rng(1).random([n - 2 for n in field.shape])  # the same on all ranks
    for _ in range(count):
        field[...] = -1
        field[1:-1, 1:-1] = inside
        exchange()
        assert (field[1:-1, 0] == inside[:, -1]).all() and (field[-1, 1:-1] == inside[0]).all()
        if comm.bcast("auto: chose" in exchange.report()):
            break
    exchange.free()
    return "known" if known else "new"


def next_line() -> str:
    """Return the next line of rank 0's standard input, "" at its end."""
    return comm.bcast(sys.stdin.readline() if comm.rank == 0 else None)


exchanged(MOST_EXCHANGES)
comm.Barrier()  # the file is whole
if comm.rank == 0:
    [file] = Path(os.environ["HALOSCOPE_CACHE"]).iterdir()
    print(file.read_bytes().hex(), flush=True)
while line := next_line():
    if comm.rank == 0:
        file.unlink(missing_ok=True)
        file.write_bytes(bytes.fromhex(line))
        file.chmod(0o600)
    comm.Barrier()
    found = exchanged(3)
    if comm.rank == 0:
        print(found, flush=True)
