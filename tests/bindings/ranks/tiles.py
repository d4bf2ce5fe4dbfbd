"""The program of tiles.cpp in Python: several tiles a rank, of sizes and numbers that are known at run time.

Run by ranks: `mpiexec -n N python tiles.py [STRATEGY]`; `python tiles.py reference` computes the same on whole arrays.
"""

import math
import sys

import numpy as np

CELLS, STEPS, TILES = (26, 37), 4, ((9, 10), (26, 37), (5, 40))  # x is the last axis, and wraps around


def initial(first: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Return the values of a block of cells that begins at `first`."""
    j, i = np.ix_(*(low + np.arange(n) for low, n in zip(first, shape, strict=True)))
    return ((i * 7919 + j * 104729) % 1000003) / 1000003


def find_fluxes(u: np.ndarray, f: np.ndarray) -> None:
    """Set the faces of a block, the last ones included. u has two ghost layers, f one."""
    a = u[2:-2]
    f[1:-1, 1:-1] = (a[:, 1:-2] - a[:, 2:-1]) + 0.25 * (a[:, :-3] - a[:, 3:])


def advance(u: np.ndarray, f: np.ndarray) -> None:
    inside, below, above = f[1:-1], f[:-2], f[2:]
    u[2:-2, 2:-2] += 0.1 * (inside[:, 1:-2] - inside[:, 2:-1]) + 0.05 * (below[:, :-3] - above[:, 3:])


def checksum(u: np.ndarray, first: tuple[int, ...]) -> int:
    """Return the part of the checksum of a block of cells that begins at `first`."""
    j, i = np.ix_(*(low + np.arange(n) for low, n in zip(first, u.shape, strict=True)))
    weight = 2 * (j * CELLS[1] + i).astype(np.uint64) + 1
    return int((np.ascontiguousarray(u).view(np.uint64) * weight).sum(dtype=np.uint64))


def bits(number: float) -> int:
    return int(np.float64(number).view(np.uint64))


def reference() -> int:
    u, f = np.zeros([n + 4 for n in CELLS]), np.zeros([CELLS[0] + 2, CELLS[1] + 3])
    u[2:-2, 2:-2] = initial((0, 0), CELLS)
    for _ in range(STEPS):
        u[:, :2], u[:, -2:] = u[:, -4:-2].copy(), u[:, 2:4].copy()
        find_fluxes(u, f)
        f[:, 0], f[:, -1] = f[:, -3].copy(), f[:, 2].copy()
        advance(u, f)
    inside = u[2:-2, 2:-2]
    return checksum(inside, (0, 0)) + bits(math.sqrt(math.fsum((inside * inside).ravel())))


def own_tiles(rows: int, columns: int, rank: int, ranks: int) -> list[tuple[slice, slice]]:
    """Return the tiles of a rank, of which it may have several, one or none."""
    corners = [(y, x) for y in range(0, CELLS[0], rows) for x in range(0, CELLS[1], columns)]
    return [
        (slice(y, min(y + rows, CELLS[0])), slice(x, min(x + columns, CELLS[1])))
        for n, (y, x) in enumerate(corners)
        if (5 * n + n // 4) % ranks == rank
    ]


def on_ranks(tile: tuple[int, int], strategy: str | None) -> int | None:
    """Return the checksum on rank 0."""
    from mpi4py import MPI

    import haloscope

    comm = MPI.COMM_WORLD
    grid = haloscope.Grid(comm, CELLS, periodic=(False, True), owned=own_tiles(*tile, comm.rank, comm.size))
    fields = [(block.zeros(halo=2), block.zeros(halo=1, centring="face-1")) for block in grid.blocks]
    for block, (u, _) in zip(grid.blocks, fields, strict=True):
        u[block.inner(halo=2)] = initial([part.start for part in block.owned], block.shape)
    arrays = [haloscope.Field(array, halo=h) for pair in fields for array, h in zip(pair, (2, 1), strict=True)]
    with haloscope.Exchange(grid, arrays, strategy=strategy) as halo:
        for _ in range(STEPS):
            halo(only=0)
            for u, f in fields:
                find_fluxes(u, f)
            halo(only=1)
            for u, f in fields:
                advance(u, f)
    norm = haloscope.norm(grid, [u for u, _ in fields], halo=2)
    own = [
        checksum(u[block.inner(halo=2)], [part.start for part in block.owned])
        for block, (u, _) in zip(grid.blocks, fields, strict=True)
    ]
    return comm.reduce(sum(own) + (bits(norm) if comm.rank == 0 else 0))


if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else None
    for one in TILES:
        found = reference() if word == "reference" else on_ranks(one, word)
        if found is not None:
            print(f"{found % 2**64:016x}")
