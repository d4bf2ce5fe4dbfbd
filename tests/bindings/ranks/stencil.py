"""Averages neighbours along x on a periodic grid of rows, split in x, and writes the field; the halo can be wrong.

Usage: stencil.py STEPS right|wrong. With `wrong`, the middle one of 3 ranks sends its second column to the left.
"""

import sys

import numpy as np
from mpi4py import MPI

CELLS, ROWS = 32, 4
comm = MPI.COMM_WORLD
steps, wrong = int(sys.argv[1]), sys.argv[2] == "wrong" and comm.size == 3 and comm.rank == 1
parts = np.array_split(np.arange(CELLS), comm.size)
mine = parts[comm.rank]
u = np.zeros((ROWS, len(mine) + 2))
u[:, 1:-1] = (mine + 1) ** 2 + 10.0 * np.arange(ROWS)[:, None]
left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
for _ in range(steps):
    u[:, -1] = comm.sendrecv(u[:, 2 if wrong else 1].copy(), left, source=right)
    u[:, 0] = comm.sendrecv(u[:, -2].copy(), right, source=left)
    u[:, 1:-1] = 0.25 * (u[:, :-2] + u[:, 2:]) + 0.5 * u[:, 1:-1]
blocks = comm.gather(u[:, 1:-1])
if comm.rank == 0:
    field = np.concatenate(blocks, axis=1)
    np.save("u.npy", field)
    print(f"largest value {field.max():.15g}, smallest {field.min():.15g}")
