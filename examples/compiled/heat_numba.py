"""Heat in 2D on a periodic grid, in one function that Numba compiles: `mpiexec -n 4 python heat_numba.py`."""

import numba
import numpy as np
from mpi4py import MPI

import haloscope
from haloscope.numba import finish, handle, start

comm = MPI.COMM_WORLD
grid = haloscope.Grid(comm, (96, 64), periodic=True)
old, new = grid.zeros(), grid.zeros()
halo = haloscope.Exchange(grid, [(old, new)])  # two slots that take turns

y, x = np.meshgrid(*(np.arange(part.start, part.stop) for part in grid.owned), indexing="ij")
old[grid.inner()] = (abs(y - 48) < 8) & (abs(x - 32) < 8)


@numba.njit
def sweep(new, old, rows, columns):
    """Compute a box of owned cells, specified by (first, end) of rows and columns."""
    for j in range(*rows):
        for i in range(*columns):
            around = (old[j - 1, i] + old[j + 1, i]) + (old[j, i - 1] + old[j, i + 1])
            new[j, i] = old[j, i] + 0.2 * (around - 4.0 * old[j, i])


@numba.njit
def advance(halo, old, new, steps):
    """Compute steps; the halo is filled while the interior is computed."""
    ny, nx = old.shape[0] - 2, old.shape[1] - 2
    for step in range(steps):
        start(halo, step % 2)
        sweep(new, old, (2, ny), (2, nx))  # reads no halo
        finish(halo)
        sweep(new, old, (1, 2), (1, nx + 1))
        sweep(new, old, (ny, ny + 1), (1, nx + 1))
        sweep(new, old, (2, ny), (1, 2))
        sweep(new, old, (2, ny), (nx, nx + 1))
        old, new = new, old


advance(handle(halo), old, new, 100)
hottest = comm.allreduce(float(old[grid.inner()].max()), MPI.MAX)
if comm.rank == 0:
    print(f"after 100 steps the hottest cell has {hottest:.15f}")
