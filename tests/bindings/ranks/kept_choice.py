"""Exchanges by the default strategy until it has decided; rank 0 prints whether an earlier program's choice was known.

Run by ranks: `mpiexec -n N python kept_choice.py [CELLS]`, with CELLS cells along each axis.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

import haloscope

MOST_EXCHANGES = 2000

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 16
grid = haloscope.Grid(MPI.COMM_WORLD, (cells, cells), periodic=True)
exchange = haloscope.Exchange(grid, [grid.zeros()])
for _ in range(MOST_EXCHANGES):
    if MPI.COMM_WORLD.bcast("auto: chose" in exchange.report()):
        break
    exchange()
if grid.comm.rank == 0:
    print("known" if "was chosen on 20" in exchange.report() else "new")
