"""The program of pencils.cpp in Python: sides and dimensions by call, with ghost rows that the code has computed.

Run by ranks: `mpiexec -n N python pencils.py [STRATEGY]`; `python pencils.py reference` computes the same on whole
arrays.
"""

import sys

import numpy as np

CELLS, STEPS = (8, 10, 12), 10  # z with walls, y and x periodic; x is the last axis, and whole on each rank
NEXT, OWN, BEFORE = slice(2, None), slice(1, -1), slice(-2)
INNER = (OWN, OWN, OWN)


def initial(k: np.ndarray, j: np.ndarray, i: np.ndarray, field: int) -> np.ndarray:
    return ((i * 7919 + j * 104729 + k * 15485863 + field * 1299709) % 1000003) / 1000003


def step(u, v, w, p, fill_low, fill_high) -> None:
    """Advance by one step. fill_low, fill_high: fill the halos on the low sides of arrays, on the high sides."""
    fill_low((u, v, w))
    p[INNER] = 0.5 * p[INNER] + 0.125 * (
        (u[OWN, BEFORE, BEFORE] + v[BEFORE, BEFORE, BEFORE]) + (w[BEFORE, BEFORE, OWN] + u[BEFORE, OWN, BEFORE])
    )
    fill_high((p,))
    u[INNER] = 0.5 * u[INNER] + 0.25 * (p[NEXT, NEXT, NEXT] + p[OWN, NEXT, NEXT])
    v[INNER] = 0.5 * v[INNER] + 0.25 * (p[NEXT, OWN, NEXT] + p[NEXT, NEXT, NEXT])
    w[INNER] = 0.5 * w[INNER] + 0.25 * (p[NEXT, NEXT, OWN] + p[NEXT, OWN, OWN])


def wrap(u: np.ndarray, axis: int) -> None:
    """Fill the ghost layers of a periodic axis that this rank holds all of."""
    u = np.moveaxis(u, axis, 0)
    u[0], u[-1] = u[-2], u[1]


def close(u: np.ndarray, low: bool, high: bool) -> None:
    """Copy the outermost planes of z to the ghost planes behind the walls."""
    if low:
        u[0] = u[1]
    if high:
        u[-1] = u[-2]


def checksum(u: np.ndarray, first: tuple[int, int, int]) -> int:
    """Return the part of the checksum of a block of cells that begins at `first`."""
    k, j, i = np.ix_(*(low + np.arange(n) for low, n in zip(first, u.shape, strict=True)))
    weight = 2 * ((k * CELLS[1] + j) * CELLS[2] + i).astype(np.uint64) + 1
    return int((np.ascontiguousarray(u).view(np.uint64) * weight).sum(dtype=np.uint64))


def set_up(arrays: list[np.ndarray], first: tuple[int, int, int]) -> None:
    for number, u in enumerate(arrays):
        k, j, i = np.ix_(*(low + np.arange(n - 2) for low, n in zip(first, u.shape, strict=True)))
        u[INNER] = initial(k, j, i, number)


def reference() -> int:
    arrays = [np.zeros([n + 2 for n in CELLS]) for _ in range(4)]
    set_up(arrays, (0, 0, 0))

    def fill(chosen) -> None:
        for u in chosen:
            wrap(u, 2)
            wrap(u, 1)
            close(u, True, True)

    for _ in range(STEPS):
        step(*arrays, fill, fill)
    return sum(checksum(u[INNER], (0, 0, 0)) for u in arrays)


def on_ranks(strategy: str | None) -> int | None:
    """Return the checksum on rank 0."""
    from mpi4py import MPI

    import haloscope

    split = (*MPI.Compute_dims(MPI.COMM_WORLD.size, 2), 1)
    grid = haloscope.Grid(MPI.COMM_WORLD, CELLS, periodic=(False, True, True), process_grid=split)
    arrays = [grid.zeros(halo=1) for _ in range(4)]
    first = [part.start for part in grid.owned]
    walls = first[0] == 0, grid.owned[0].stop == CELLS[0]
    set_up(arrays, first)
    with haloscope.Exchange(grid, arrays, halo=1, strategy=strategy) as halo:

        def fill(only, side: tuple[int, int]) -> None:
            for u in only:
                wrap(u, 2)
            halo(only=only, depth=(0, side, 0), ghost_rows=True)
            for u in only:
                close(u, *walls)
            halo(only=only, depth=(side, 0, 0), ghost_rows=True)

        for _ in range(STEPS):
            step(*arrays, lambda only: fill(only, (1, 0)), lambda only: fill(only, (0, 1)))
    return MPI.COMM_WORLD.reduce(sum(checksum(u[INNER], first) for u in arrays))


if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else None
    found = reference() if word == "reference" else on_ranks(word)
    if found is not None:
        print(f"{found % 2**64:016x}")
