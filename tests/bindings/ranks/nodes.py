"""The program of nodes.cpp in Python: forces of cells added up at nodes, positions shared from the owners of nodes.

Run by ranks: `mpiexec -n N python nodes.py [STRATEGY]`; `python nodes.py reference` computes the same on whole periodic
arrays.
"""

import sys

import numpy as np

CELLS, STEPS, UNIT = (14, 20), 10, 2.0**-20  # x is the last axis
BEGIN, END = slice(-1), slice(1, None)  # the nodes at which the cells along an axis begin, and end


def initial(j: np.ndarray, i: np.ndarray) -> np.ndarray:
    return ((i * 7919 + j * 104729) % 1000003) / 1000003


def force_of(p00: np.ndarray, p01: np.ndarray, p10: np.ndarray, p11: np.ndarray) -> np.ndarray:
    """Return the forces of cells on their nodes: multiples of UNIT, so that sums do not depend on their order."""
    return np.floor(0.25 * ((p00 + p01) + (p10 + p11)) / UNIT) * UNIT


def moved(position: np.ndarray, force: np.ndarray) -> np.ndarray:
    return 0.5 * position + 0.125 * force


def checksum(u: np.ndarray, y: int, x: int) -> int:
    """Return the part of the checksum of the nodes of a block of cells that begins at (y, x)."""
    j, i = y + np.arange(u.shape[0])[:, None], x + np.arange(u.shape[1])
    weight = 2 * (j * CELLS[1] + i).astype(np.uint64) + 1
    return int((np.ascontiguousarray(u).view(np.uint64) * weight).sum(dtype=np.uint64))


def reference() -> int:
    position = initial(np.arange(CELLS[0])[:, None], np.arange(CELLS[1]))
    for _ in range(STEPS):
        of_cells = force_of(
            position, np.roll(position, -1, 1), np.roll(position, -1, 0), np.roll(position, (-1, -1), (0, 1))
        )
        force = sum(np.roll(of_cells, by, (0, 1)) for by in ((0, 0), (0, 1), (1, 0), (1, 1)))
        position = moved(position, force)
    return checksum(position, 0, 0)


def on_ranks(strategy: str | None) -> int | None:
    """Return the checksum on rank 0."""
    from mpi4py import MPI

    import haloscope

    grid = haloscope.Grid(MPI.COMM_WORLD, CELLS, periodic=True)
    position, force = (grid.zeros(halo=0, centring="node") for _ in range(2))
    j, i = (np.arange(part.start, part.stop + 1) % n for part, n in zip(grid.owned, CELLS, strict=True))
    position[:] = initial(j[:, None], i)
    with haloscope.Exchange(grid, [position, force], halo=0, strategy=strategy) as halo:
        for _ in range(STEPS):
            p = position
            of_cells = force_of(p[BEGIN, BEGIN], p[BEGIN, END], p[END, BEGIN], p[END, END])
            force[:] = 0
            for along_y in (BEGIN, END):
                for along_x in (BEGIN, END):
                    force[along_y, along_x] += of_cells
            halo.accumulate(only=force)
            position[BEGIN, BEGIN] = moved(position, force)[BEGIN, BEGIN]
            halo.share(only=position)
    return MPI.COMM_WORLD.reduce(checksum(position[BEGIN, BEGIN], *(part.start for part in grid.owned)))


if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else None
    found = reference() if word == "reference" else on_ranks(word)
    if found is not None:
        print(f"{found % 2**64:016x}")
