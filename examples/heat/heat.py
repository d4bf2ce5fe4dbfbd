"""Heat in 2D on a periodic grid: `mpiexec -n 4 python heat.py`. The halo is filled while the interior is computed."""

import numpy as np
from mpi4py import MPI

import haloscope

comm = MPI.COMM_WORLD
grid = haloscope.Grid(comm, (96, 64), periodic=True)
old, new = grid.zeros(), grid.zeros()
halo = haloscope.Exchange(grid, [(old, new)])  # two slots that take turns

y, x = np.meshgrid(*(np.arange(part.start, part.stop) for part in grid.owned), indexing="ij")
old[grid.inner()] = (abs(y - 48) < 8) & (abs(x - 32) < 8)


def sweep(new, old, rows, columns):
    """Compute a box of owned cells, specified by (first, end) of rows and columns."""
    (j, j_end), (i, i_end) = rows, columns
    new[j:j_end, i:i_end] = old[j:j_end, i:i_end] + 0.2 * (
        (old[j - 1 : j_end - 1, i:i_end] + old[j + 1 : j_end + 1, i:i_end])
        + (old[j:j_end, i - 1 : i_end - 1] + old[j:j_end, i + 1 : i_end + 1])
        - 4.0 * old[j:j_end, i:i_end]
    )


ny, nx = grid.shape
for step in range(100):
    halo.start(step % 2)
    sweep(new, old, (2, ny), (2, nx))  # reads no halo
    halo.finish()
    sweep(new, old, (1, 2), (1, nx + 1))
    sweep(new, old, (ny, ny + 1), (1, nx + 1))
    sweep(new, old, (2, ny), (1, 2))
    sweep(new, old, (2, ny), (nx, nx + 1))
    old, new = new, old

hottest = comm.allreduce(float(old[grid.inner()].max()), MPI.MAX)
if comm.rank == 0:
    print(f"after 100 steps the hottest cell has {hottest:.15f}")
