"""A neighbour that is late, or never comes: it sleeps, stops itself or fails before one exchange. Prints "right" or
"wrong" on each rank.

usage: late.py STRATEGY sleep|stop|raise|raise-within|open|endless [SECONDS [STEP]]
"raise-within": within a `with` block of the exchange. "open": rank 1 opens the exchange late. "endless": each rank
prints its process number, no rank is late, and steps go on until the job is killed.
"""

import itertools
import os
import signal
import subprocess
import sys
import time

from mpi4py import MPI

import haloscope
from haloscope.ranks import library

strategy, how = sys.argv[1:3]
seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 2
late_step = int(sys.argv[4]) if len(sys.argv) > 4 else 3
comm = MPI.COMM_WORLD
library()  # takes longer than the patience of the tests on a machine with other work
comm.Barrier()  # ranks may have started at different times
grid = haloscope.Grid(comm, (12, 12), periodic=True)
u = grid.zeros(halo=1)
if how == "open" and comm.rank == 1:
    time.sleep(seconds)
halo = haloscope.Exchange(grid, [haloscope.Field(u, name="heat")], strategy=strategy)
right = True
if how == "endless":
    print(f"{os.getpid()}\n", end="", flush=True)
for step in itertools.count(1) if how == "endless" else range(1, 6):
    if step == late_step and comm.rank == 1 and how not in ("open", "endless"):
        if how == "raise-within":
            with halo:
                raise FloatingPointError("the temperature is no number")
        if how == "raise":
            raise FloatingPointError("the temperature is no number")
        if how == "stop":  # somebody else lets it go on
            subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            time.sleep(seconds)
    u[:] = -1
    u[grid.inner()] = step
    halo()
    right = right and bool((u == step).all())
print("right\n" if right else "wrong\n", end="")  # at once: ranks write into one pipe
