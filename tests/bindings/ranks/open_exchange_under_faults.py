"""A call on an exchange that is open, in which calls of MPI by the library count, and may fail.

usage: open_exchange_under_faults.py check_clean|rebind
rebind: the last rank passes no arrays, so that all ranks are refused.
Each rank prints "rank N: right" or "rank N: refused: TEXT".
"""

import os
import sys

from mpi4py import MPI

import haloscope
from haloscope.errors import HaloscopeError

os.environ["HALOSCOPE_TEST_CALLERS"] = "none"
comm = MPI.COMM_WORLD
grid = haloscope.Grid(comm, (8, 8), periodic=True)
u = grid.zeros()
halo = haloscope.Exchange(grid, u, strategy="direct/neighbor", guard=True)
os.environ["HALOSCOPE_TEST_CALLERS"] = "haloscope"
try:
    if sys.argv[1] == "check_clean":
        halo.check_clean()
    else:
        halo.rebind(u if comm.rank < comm.size - 1 else [])
    found = "right"
except HaloscopeError as error:
    found = f"refused: {error}"
os.environ["HALOSCOPE_TEST_CALLERS"] = "none"
print(f"rank {comm.rank}: {found}\n", end="", flush=True)
comm.Barrier()
os._exit(0)
