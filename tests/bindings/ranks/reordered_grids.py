"""Grids whose ranks take other places: every ghost right, cells in the places that the grid names, fewer between nodes.

Run by ranks: `mpiexec -n N python reordered_grids.py`.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

import haloscope
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD
CELLS = (16, 12)


def numbers(grid: haloscope.Grid, halo: int) -> np.ndarray:
    """The global numbers of the rank's cells and, around a periodic grid, of its ghosts."""
    axes = [np.arange(part.start - halo, part.stop + halo) % n for part, n in zip(grid.owned, CELLS, strict=True)]
    return axes[0][:, None] * CELLS[1] + axes[1]


def between_nodes(grid: haloscope.Grid, nodes: list[int]) -> int:
    """Cells on the sides of the own block beyond which another node's rank begins."""
    sides = [((1, 0), 1), ((-1, 0), 1), ((0, 1), 0), ((0, -1), 0)]
    mine = sum(grid.shape[along] for offset, along in sides if nodes[grid.neighbour(offset)] != nodes[COMM.rank])
    return COMM.allreduce(mine)


def check(strategy: str, nodes: list[int]) -> tuple[int, int]:
    plain = haloscope.Grid(COMM, CELLS, periodic=True, nodes=nodes)
    grid = haloscope.Grid(COMM, CELLS, periodic=True, reorder=True, nodes=nodes)
    u = grid.zeros(halo=1)
    u[...] = -1
    u[grid.inner()] = numbers(grid, 0)
    halo = haloscope.Exchange(grid, [u], strategy=strategy)
    halo()
    assert (u == numbers(grid, 1)).all(), (strategy, COMM.rank, u)
    halo.free()
    return between_nodes(plain, nodes), between_nodes(grid, nodes)


def refused(comm: MPI.Comm = COMM, **arguments: object) -> str:
    try:
        haloscope.Grid(comm, CELLS, **arguments)
    except UsageError as problem:
        return str(problem)
    return ""


dealt = [rank % 2 for rank in range(COMM.size)]
for strategy in ("ordered/p2p", "direct/shared:packed+p2p"):
    before, after = check(strategy, dealt)
    assert after < before if COMM.size in (4, 6) else after <= before, (before, after)
owned = tuple(slice(0, n) for n in CELLS)
assert "leave reorder out" in refused(reorder=True, owned=owned)
cart = COMM.Create_cart((1, COMM.size))
assert "leave reorder out" in refused(reorder=True, comm=cart)
cart.Free()
assert "one for each" in refused(reorder=True, nodes=[0] * (COMM.size + 1))
if COMM.rank == 0:
    print("right")
