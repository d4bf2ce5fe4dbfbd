"""Heat in 2D by the binding of this folder, with the same computation as examples/heat/heat.c.

mpiexec -n 4 python heat.py build/release/libhaloscope_exchange.so
"""

import sys

import numpy as np
from binding import Exchange, Grid, Library
from mpi4py import MPI

comm = MPI.COMM_WORLD
library = Library(sys.argv[1])
grid = Grid(library, comm.py2f(), (64, 96), periodic=True)
own = grid.owned()
(x0, y0), (x1, y1) = own.lo[:2], own.hi[:2]
u = [np.zeros((y1 - y0 + 2, x1 - x0 + 2)) for _ in range(2)]
halo = Exchange(grid, [a[1:, 1:].ctypes.data for a in u], u[0].strides[::-1], b"heat")

y, x = np.ogrid[y0:y1, x0:x1]
u[0][1:-1, 1:-1] = (abs(y - 48) < 8) & (abs(x - 32) < 8)
for step in range(100):
    old, new = u[step % 2], u[(step + 1) % 2]
    halo.run(step % 2)
    in_y, in_x = old[:-2, 1:-1] + old[2:, 1:-1], old[1:-1, :-2] + old[1:-1, 2:]
    new[1:-1, 1:-1] = old[1:-1, 1:-1] + 0.2 * (in_y + in_x - 4.0 * old[1:-1, 1:-1])
hottest = comm.allreduce(float(u[0][1:-1, 1:-1].max()), MPI.MAX)
if comm.rank == 0:
    print(f"after 100 steps the hottest cell has {hottest:.15f}")
halo.free()
grid.free()
