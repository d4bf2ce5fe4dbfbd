"""The program of waves.cpp in Python: dimensions and layers that are known at run time.

Run by ranks: `mpiexec -n N python waves.py [STRATEGY]`; `python waves.py reference` computes the same on whole arrays.
"""

import sys

import numpy as np

CELLS, PERIODIC, STEPS = (20, 16, 18), (True, False, True), 4  # x is the last axis
CASES = [(dims, layers) for dims in (1, 2, 3) for layers in (1, 2, 5, 8)]


def initial(shape: tuple[int, ...], first: tuple[int, ...]) -> np.ndarray:
    """Return the values of a block of cells that begins at `first`."""
    index = np.ix_(*(low + np.arange(n) for low, n in zip(first, shape, strict=True)))
    factors = (15485863, 104729, 7919)[-len(shape) :]
    return (sum(number * factor for number, factor in zip(index, factors, strict=True)) % 1000003) / 1000003


def shifted(u: np.ndarray, layers: int, axis: int, by: int) -> np.ndarray:
    """Return the points at a distance from the owned ones along an axis."""
    inner = [slice(layers, -layers)] * u.ndim
    inner[axis] = slice(layers + by, u.shape[axis] - layers + by)
    return u[tuple(inner)]


def step(u: np.ndarray, v: np.ndarray, layers: int) -> None:
    """Advance v, the values of the time before u, to the time after it."""
    total = 0.5 * shifted(v, layers, 0, 0)
    for k in range(1, layers + 1):
        pairs = None
        for axis in reversed(range(u.ndim)):
            pair = shifted(u, layers, axis, -k) + shifted(u, layers, axis, k)
            pairs = pair if pairs is None else pairs + pair
        total = total + 0.125 / (k * k) * pairs
    v[(slice(layers, -layers),) * u.ndim] = total


def checksum(u: np.ndarray, first: tuple[int, ...]) -> int:
    """Return the part of the checksum of a block of cells that begins at `first`."""
    number = 0
    index = np.ix_(*(low + np.arange(n) for low, n in zip(first, u.shape, strict=True)))
    for position, cells in zip(index, CELLS[-u.ndim :], strict=True):
        number = number * cells + position
    weight = 2 * number.astype(np.uint64) + 1
    return int((np.ascontiguousarray(u).view(np.uint64) * weight).sum(dtype=np.uint64))


def wrap(u: np.ndarray, layers: int) -> None:
    """Fill the ghost layers of an array of all cells."""
    for axis, periodic in enumerate(PERIODIC[-u.ndim :]):
        if periodic:
            along = np.moveaxis(u, axis, 0)
            along[:layers], along[-layers:] = along[-2 * layers : -layers].copy(), along[layers : 2 * layers].copy()


def reference(dims: int, layers: int) -> int:
    cells = CELLS[-dims:]
    u, v = (np.zeros([n + 2 * layers for n in cells]) for _ in range(2))
    for array in (u, v):
        array[(slice(layers, -layers),) * dims] = initial(cells, (0,) * dims)
    for _ in range(STEPS):
        wrap(u, layers)
        step(u, v, layers)
        u, v = v, u
    return checksum(u[(slice(layers, -layers),) * dims], (0,) * dims)


def on_ranks(dims: int, layers: int, strategy: str | None) -> int | None:
    """Return the checksum on rank 0."""
    from mpi4py import MPI

    import haloscope

    grid = haloscope.Grid(MPI.COMM_WORLD, CELLS[-dims:], periodic=PERIODIC[-dims:])
    u, v = grid.zeros(halo=layers), grid.zeros(halo=layers)
    first = tuple(part.start for part in grid.owned)
    inner = (slice(layers, -layers),) * dims
    u[inner] = v[inner] = initial(grid.shape, first)
    with haloscope.Exchange(grid, [u], halo=layers, strategy=strategy, corners=False) as halo:
        for _ in range(STEPS):
            halo(u)
            step(u, v, layers)
            u, v = v, u
    return MPI.COMM_WORLD.reduce(checksum(u[inner], first))


if __name__ == "__main__":
    word = sys.argv[1] if len(sys.argv) > 1 else None
    for case in CASES:
        found = reference(*case) if word == "reference" else on_ranks(*case, word)
        if found is not None:
            print(f"{found % 2**64:016x}")
