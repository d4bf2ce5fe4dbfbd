"""The program of phases.cpp in Python: seven exchanges a step of other arrays and depths, by one Exchange.

Run by ranks: `mpiexec -n N python phases.py [STRATEGY]`; `python phases.py reference` computes the same on whole
periodic arrays without halos.
"""

import sys

import numpy as np

CELLS, STEPS = (22, 30), 10  # x is the last axis
CENTRINGS = ("cell",) * 7 + ("node",) * 4 + ("face-1",) * 2 + ("face-0",) * 2
PHASES = (
    ((0, 2, 4, 7, 9), 1),
    ((5,), 1),
    ((4,), 1),
    ((0, 1, 2, 3, 11, 13), 2),
    ((1, 3, 8, 10, 12, 14), 2),
    ((0, 2, 4, 5, 6), 2),
    ((8, 10), 1),
)


def initial(j: np.ndarray, i: np.ndarray, field: int) -> np.ndarray:
    return ((i * 7919 + j * 104729 + field * 1299709) % 1000003) / 1000003


def smooth(u: np.ndarray, inner: tuple[slice, ...], depth: int) -> None:
    """Set points to averages of themselves and of the points `depth` away."""

    def at(dj: int, di: int) -> np.ndarray:
        return u[tuple(slice(s.start + d, s.stop + d) for s, d in zip(inner, (dj, di), strict=True))]

    d = depth
    u[inner] = 0.5 * at(0, 0) + 0.125 * ((at(0, -d) + at(0, d)) + (at(-d, 0) + at(d, 0)))


def checksum(u: np.ndarray, y: int, x: int) -> int:
    """Return the part of the checksum of a block of cells that begins at (y, x)."""
    j, i = y + np.arange(u.shape[0])[:, None], x + np.arange(u.shape[1])
    weight = 2 * (j * CELLS[1] + i).astype(np.uint64) + 1
    return int((np.ascontiguousarray(u).view(np.uint64) * weight).sum(dtype=np.uint64))


def reference() -> int:
    j, i = np.arange(CELLS[0])[:, None], np.arange(CELLS[1])
    arrays = [initial(j, i, number) for number in range(len(CENTRINGS))]
    for _ in range(STEPS):
        for only, d in PHASES:
            for number in only:
                u = arrays[number]
                along_y, along_x = (np.roll(u, d, axis) + np.roll(u, -d, axis) for axis in (0, 1))
                arrays[number] = 0.5 * u + 0.125 * (along_x + along_y)
    return sum(checksum(u, 0, 0) for u in arrays)


def on_ranks(strategy: str | None) -> int | None:
    """Return the checksum on rank 0."""
    from mpi4py import MPI

    import haloscope

    grid = haloscope.Grid(MPI.COMM_WORLD, CELLS, periodic=True)
    arrays = [grid.zeros(halo=2, centring=centring) for centring in CENTRINGS]
    inner = [tuple(slice(2, n - 2) for n in u.shape) for u in arrays]
    for number, (u, own) in enumerate(zip(arrays, inner, strict=True)):
        j, i = (part.start + np.arange(s.stop - 2) for part, s in zip(grid.owned, own, strict=True))
        u[own] = initial((j % CELLS[0])[:, None], i % CELLS[1], number)
    with haloscope.Exchange(grid, arrays, halo=2, strategy=strategy) as halo:
        for _ in range(STEPS):
            for only, depth in PHASES:
                halo(only=only, depth=depth)
                for number in only:
                    smooth(arrays[number], inner[number], depth)
    first = [part.start for part in grid.owned]
    mine = sum(checksum(u[2 : 2 + grid.shape[0], 2 : 2 + grid.shape[1]], *first) for u in arrays)
    return MPI.COMM_WORLD.reduce(mine)


if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else None
    found = reference() if word == "reference" else on_ranks(word)
    if found is not None:
        print(f"{found % 2**64:016x}")
