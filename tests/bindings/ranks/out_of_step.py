"""Ranks that do not make the same exchanges: rank 1 makes one more, exchanges another slot, accumulates, or takes two
exchanges in another order.

usage: out_of_step.py STRATEGY more|slot|accumulate|order [guard]
Prints "right" or "wrong", or "refused: TEXT", on each rank, and "overwritten" where messages arrive in arrays that were
given to an exchange which was refused and freed.
"""

import sys
import time

from mpi4py import MPI

import haloscope
from haloscope.errors import HaloscopeError
from haloscope.ranks import library

strategy, how, *guard = sys.argv[1:]
comm = MPI.COMM_WORLD
library()  # takes longer than the patience of the tests on a machine with other work
comm.Barrier()  # ranks may have started at different times
grid = haloscope.Grid(comm, (12, 12), periodic=True)
slots = (grid.zeros(halo=1), grid.zeros(halo=1))
halo = haloscope.Exchange(grid, [haloscope.Field(slots, name="heat")], strategy=strategy, guard=bool(guard))
other = haloscope.Exchange(
    grid, [haloscope.Field(grid.zeros(halo=1), name="wind")], strategy=strategy, guard=bool(guard)
)


def step(number: int) -> bool:
    """Sweep, exchange and check."""
    slot = 0 if how == "more" else number % 2
    slots[slot][grid.inner()] = number
    halo.changed(slot)
    if number == 3 and comm.rank == 1:
        if how == "more":
            halo(slot)
        if how == "accumulate":
            halo.accumulate(slot)
            return True
        if how == "slot":
            slot = 1 - slot
        if how == "order":
            other()
    halo(slot)
    if how == "order" and (number != 3 or comm.rank == 0):
        other()
    return bool((slots[slot] == number).all())


if how == "accumulate":
    halo.accumulate()  # the first one is collective
try:
    right = [step(number) for number in range(1, 6)]
    found = "right" if all(right) else "wrong"
except HaloscopeError as error:
    found = f"refused: {error}"
print(found + "\n", end="", flush=True)
halo.free()  # waits for nobody after a refusal
other.free()
for array in slots:
    array[:] = -1
comm.Barrier()
time.sleep(0.05)
comm.Barrier()
if any((array != -1).any() for array in slots):
    print("overwritten\n", end="", flush=True)
