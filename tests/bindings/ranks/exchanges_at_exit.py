"""Exchanges in handlers at the exit of a program, which has not dropped them: some registered them before the first
exchange.

Run by ranks: `mpiexec -n N python exchanges_at_exit.py`. Prints "later handlers earlier handlers" on rank 0.
"""

from __future__ import annotations

import atexit

from mpi4py import MPI

import haloscope
from haloscope import lifetimes

COMM = MPI.COMM_WORLD
OPEN: dict[str, haloscope.Exchange] = {}


def use(name: str) -> None:
    """Fill the halos of an exchange that is still open."""
    u[...] = 0
    u[grid.inner()] = 1
    OPEN[name]()
    assert (u == 1).all()


def open_another() -> None:
    """Open an exchange, which frees those that all ranks have dropped, and use it."""
    with haloscope.Exchange(grid, grid.zeros()) as other:
        other()


def at_exit(when: str) -> None:
    """Use what is still open, free an exchange and drop another."""
    open_another()
    for name in list(OPEN):
        use(name)
    OPEN.pop(f"freed by {when} handlers").free()
    del OPEN[f"dropped by {when} handlers"]
    assert len(lifetimes.Dropped.on(COMM)._waiting) == 1
    open_another()
    assert not lifetimes.Dropped.on(COMM)._waiting
    use("kept")
    if COMM.rank == 0:
        print(when, "handlers", flush=True)


atexit.register(at_exit, "earlier")
grid = haloscope.Grid(COMM, (12, 12 * COMM.size), periodic=True)
u = grid.zeros()
for state in ("kept", *(f"{end} by {when} handlers" for end in ("freed", "dropped") for when in ("earlier", "later"))):
    OPEN[state] = haloscope.Exchange(grid, u, strategy=None if state == "kept" else "ordered/rma-fence")
    use(state)
atexit.register(at_exit, "later")
