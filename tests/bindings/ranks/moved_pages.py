"""Prints the megabytes on huge pages of a large array of the program's, before and after an exchange is opened."""

import mmap
import re
from pathlib import Path

import numpy as np
from mpi4py import MPI

import haloscope

grid = haloscope.Grid(MPI.COMM_WORLD, (2048, 2048))
shape = [n + 2 for n in grid.shape]
memory = mmap.mmap(-1, 8 * shape[0] * shape[1], flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
u = np.frombuffer(memory).reshape(shape)  # NumPy would ask for huge pages
u[:] = 1


def megabytes() -> int:
    """Return the part of the array's mapping that is on huge pages."""
    address = u.ctypes.data
    for mapping in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)[1:]:
        begin, end = (int(number, 16) for number in mapping.split(" ")[0].split("-"))
        if begin <= address < end:
            return int(re.search(r"AnonHugePages: +(\d+) kB", mapping)[1]) // 1024
    raise LookupError


before = megabytes()
with haloscope.Exchange(grid, [u], halo=1, strategy="direct/p2p") as halo:
    halo()
print(f"{before} {megabytes()}\n", end="", flush=True)
