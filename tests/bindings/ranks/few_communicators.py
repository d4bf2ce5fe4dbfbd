"""The program has taken all communicators of MPI but 0, 1, ..., 4; then an exchange is opened.

usage: few_communicators.py STRATEGY
Prints "right", "wrong" or "refused" on each rank each time, or "many" where MPI has more communicators than this
program takes.
"""

import sys

from mpi4py import MPI

import haloscope
from haloscope.errors import HaloscopeError

comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_RETURN)


def exchange() -> str:
    """Open, use and free an exchange."""
    try:
        grid = haloscope.Grid(comm, (12, 12), periodic=True)
        u = grid.zeros(halo=1)
        with haloscope.Exchange(grid, [u], strategy=sys.argv[1]) as halo:
            u[grid.inner()] = 1
            halo()
    except HaloscopeError:
        return "refused"
    return "right" if (u == 1).all() else "wrong"


def take_all() -> list[MPI.Comm]:
    """Return all communicators, or 5000."""
    taken: list[MPI.Comm] = []
    try:
        while len(taken) < 5000:
            taken.append(comm.Dup())
    except MPI.Exception:
        pass
    return taken


taken = take_all()
if len(taken) == 5000:
    print("many\n", end="", flush=True)
else:
    for _ in range(5):
        print(exchange() + "\n", end="", flush=True)
        taken.pop().Free()
