"""Calls on another thread than MPI allows, and after MPI's end, fail by name; what was open then does no harm.

Run by ranks: `mpiexec -n N python -m mpi4py -rc thread_level=funneled,finalize=False late_calls.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from mpi4py import MPI

import haloscope
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD
FIRST = COMM.rank == 0


def error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except UsageError as problem:
        return str(problem)
    return "no error"


def on_thread(call: Callable[[], object]) -> str:
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.append(error_of(call)))
    thread.start()
    thread.join()
    return texts[0]


grid = haloscope.Grid(COMM, (8, 8 * COMM.size), periodic=True)
u = grid.zeros()
halo = haloscope.Exchange(grid, [u], strategy="ordered/p2p")
halo()
calls = (
    halo,
    halo.start,
    halo.finish,
    halo.progress,
    halo.accumulate,
    lambda: haloscope.Exchange(grid, [u]),
    lambda: haloscope.Grid(COMM, (8, 8)),
    lambda: halo.rebind([u]),
)
assert MPI.Query_thread() == MPI.THREAD_FUNNELED
for call in (*calls, halo.free):
    assert "another thread than the one that initialised MPI" in on_thread(call)
halo()
other = haloscope.Exchange(grid, [grid.zeros()], strategy="ordered/rma-fence")
if FIRST:  # the others wait for this rank, and it frees the exchange after all
    assert "another thread" in on_thread(other.free)
other.free()
assert "was freed" in error_of(other)
MPI.Finalize()
for call in calls:
    assert "MPI" in error_of(call), error_of(call)
halo.free()
assert "was freed" in error_of(halo)
if FIRST:
    print("named")
