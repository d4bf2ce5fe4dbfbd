"""What `exchanges_under_faults_haloscope` does, from Python: exchanges from the first call to the last while calls of
MPI fail.

usage: exchanges_under_faults.py STRATEGY [halves|mpi4py]
halves: on two communicators of every second rank, in falling order.
mpi4py: calls of mpi4py that the package makes count, in place of those of the library.
Each rank prints the exchanges' reports, then "rank N: right", "rank N: wrong" or "rank N: refused: TEXT".
"""

import os
import sys

import numpy as np
from mpi4py import MPI

import haloscope
from haloscope.errors import HaloscopeError

comm = MPI.COMM_WORLD
if "halves" in sys.argv:
    comm = comm.Split(comm.rank % 2, -comm.rank)
rank = comm.rank
cart = comm.Create_cart([comm.size, 1], [True, True])


def exchange_all(strategy: str) -> bool:
    """Return whether all halos are right."""
    grid = haloscope.Grid(comm, (10, 12), periodic=True)
    arrays = [(grid.zeros(1, dtype), grid.zeros(1, dtype)) for dtype in ("f8", "f4")]
    right = True
    with haloscope.Exchange(grid, arrays, 1, strategy=strategy) as halo:
        for step in range(4):
            for slots in arrays:
                slots[step % 2][:] = -1
                slots[step % 2][grid.inner()] = step
            halo.start(step % 2)
            halo.progress()
            halo.finish()
            right &= all(bool((slots[step % 2] == step).all()) for slots in arrays)
        halo.accumulate(0)
        print(f"report: {halo.report()}\n", end="")
    u = np.zeros((12, 14))
    found = haloscope.Exchange(cart, u, 1, strategy=strategy)
    print(f"report: {found.report()}\n", end="")
    u[1:-1, 1:-1] = 7
    found()
    found.free()
    return right and bool((u == 7).all())


if "mpi4py" in sys.argv:
    os.environ["HALOSCOPE_TEST_CALLERS"] = "/MPI."
try:
    found = "right" if exchange_all(sys.argv[1]) else "wrong"
except HaloscopeError as error:
    found = f"refused: {error}"
if "mpi4py" in sys.argv:
    os.environ["HALOSCOPE_TEST_CALLERS"] = "none"  # the rest is the program's
print(f"rank {rank}: {found}\n", end="", flush=True)
MPI.COMM_WORLD.Barrier()
if found != "right":
    os._exit(1)  # what a failed call has left may keep MPI_Finalize waiting
