"""Exchanges that are dropped without free(), on each rank at a time of its own. Prints "right" on rank 0.

usage: dropped_exchanges.py
"""

import contextlib
import gc

import numpy as np
from mpi4py import MPI

import haloscope
from haloscope import lifetimes

comm = MPI.COMM_WORLD
grid = haloscope.Grid(comm, (12, 12), periodic=True)
kept = []
for number in range(60):
    u = grid.zeros(halo=1)
    halo = haloscope.Exchange(grid, [u], strategy="ordered/rma-fence" if number % 7 == 0 else None)
    u[grid.inner()] = number
    halo()
    assert (u == number).all()
    if number % 3 == 0:
        halo.free()
    elif number % (comm.rank + 4) == 0:
        kept.append(halo)  # on some ranks alone, for a while
    if number % 10 == 9:
        kept.clear()
    del halo
kept.clear()
gc.collect()
haloscope.Exchange(grid, [grid.zeros(halo=1)]).free()
dropped = lifetimes.Dropped.on(comm)
assert not dropped._waiting
haloscope.Exchange(grid, [grid.zeros(halo=1)])
gc.collect()
[(number, (free, arrays))] = dropped._waiting.items()
dropped._waiting[number] = (lambda: 1 / 0, arrays)
with contextlib.suppress(ZeroDivisionError):  # what cannot be freed goes on waiting
    dropped.free(comm, dropped.waiting(), np.ones(comm.size, "i8"))
assert len(dropped._waiting) == 1
dropped._waiting[number] = (free, arrays)
haloscope.Exchange(grid, [grid.zeros(halo=1)]).free()
assert not dropped._waiting
if comm.rank == 0:
    print("right")
