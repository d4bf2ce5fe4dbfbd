"""The program has taken all communicators of MPI but a few; then an exchange is opened.

usage: few_communicators.py STRATEGY LEFT
Prints "right", "wrong" or "refused" on each rank, or "many" where MPI has more communicators than this program takes.
"""

import sys

from mpi4py import MPI

import haloscope
from haloscope.errors import HaloscopeError

comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_RETURN)
taken: list[MPI.Comm] = []
found = "many"
while len(taken) < 5000:
    try:
        taken.append(comm.Dup())
    except MPI.Exception:
        found = ""
        break
for _ in range(int(sys.argv[2])):
    taken.pop().Free()
if not found:
    try:
        grid = haloscope.Grid(comm, (12, 12), periodic=True)
        u = grid.zeros(halo=1)
        with haloscope.Exchange(grid, [u], strategy=sys.argv[1]) as halo:
            u[grid.inner()] = 1
            halo()
        found = "right" if (u == 1).all() else "wrong"
    except HaloscopeError:
        found = "refused"
print(found + "\n", end="", flush=True)
