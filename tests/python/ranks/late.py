"""A neighbour that is late, or never comes: it sleeps, stops itself or fails before one exchange. Prints "right" or "wrong" on each rank.

usage: late.py STRATEGY sleep|stop|raise|open
"""

import os
import signal
import subprocess
import sys
import time

from mpi4py import MPI

import haloscope

strategy, how = sys.argv[1:]
comm = MPI.COMM_WORLD
comm.Barrier()  # ranks may have started at different times
grid = haloscope.Grid(comm, (12, 12), periodic=True)
u = grid.zeros(halo=1)
if how == "open" and comm.rank == 1:
    time.sleep(3)
halo = haloscope.Exchange(grid, [haloscope.Field(u, name="heat")], strategy=strategy)
right = True
for step in range(1, 6):
    if step == 3 and comm.rank == 1 and how != "open":
        if how == "raise":
            raise FloatingPointError("the temperature is no number")
        if how == "stop":  # somebody else lets it go on
            subprocess.Popen(["sh", "-c", f"sleep 3; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            time.sleep(3)
    u[:] = -1
    u[grid.inner()] = step
    halo()
    right = right and bool((u == step).all())
print("right" if right else "wrong")
