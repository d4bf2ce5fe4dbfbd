"""Ghost points beyond the edges of random grids, of random kinds by side: right by every transport, others untouched.

Run by ranks: `mpiexec -n N python filled_edges.py SEED ROUNDS`. All ranks draw the same numbers.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from mpi4py import MPI
from random_exchanges import check_many

import haloscope

COMM = MPI.COMM_WORLD
EDGES = ("fixed", "even", "odd", "nearest")
STRATEGIES = (
    "ordered/p2p",
    "direct/p2p",
    "direct:merged/persistent",
    "direct/shared:packed",
    "direct/auto",
    "reference",
)
UNTOUCHED = 1e9


def image(at: int, points: int, node: int, edges: tuple[str, str], periodic: bool) -> tuple[int, int]:
    """Return the point that a point of an axis has the value of, and the sign; sign 0: none fills it."""
    if periodic:
        return at % points, 1
    if 0 <= at < points:
        return at, 1
    edge = edges[at >= points]
    if edge == "nearest":
        return (0 if at < 0 else points - 1), 1
    mirrored = node - 1 - at if at < 0 else 2 * points - 1 - node - at
    return mirrored, {"fixed": 0, "even": 1, "odd": -1}[edge]


def expected(grid: haloscope.Grid, field: haloscope.Field, whole: np.ndarray) -> np.ndarray:
    """Return the array of this rank, by the images of its points in the whole grid."""
    found = np.full(field.arrays.shape, UNTOUCHED)
    lines = []
    for axis, (low, _) in enumerate(field.halo):
        extra = whole.shape[axis] - grid.cells[axis] if not grid.periodic[axis] else 0
        lines.append(
            [
                image(
                    grid.owned[axis].start + n - low, whole.shape[axis], extra, field.edges[axis], grid.periodic[axis]
                )
                for n in range(found.shape[axis])
            ]
        )
    for at in np.ndindex(found.shape):
        images = [line[n] for line, n in zip(lines, at, strict=True)]
        sign = int(np.prod([one for _, one in images]))
        if sign:
            found[at] = sign * whole[tuple(n for n, _ in images)]
    return found


def check_one(draw: random.Random) -> None:
    dims = draw.randint(1, 3)
    cells = [3 * COMM.size + draw.randint(0, 3) for _ in range(dims)]
    grid = haloscope.Grid(COMM, cells, periodic=[draw.random() < 0.3 for _ in range(dims)])
    fields, wanted = [], []
    for _ in range(draw.randint(1, 3)):
        centring = draw.choice(("cell", "node"))
        sides = [(draw.randint(0, 2), draw.randint(0, 2)) for _ in range(dims)]
        edges = [(draw.choice(EDGES), draw.choice(EDGES)) for _ in range(dims)]
        array = grid.zeros(sides, centring=centring) + UNTOUCHED
        field = haloscope.Field(array, halo=sides, centring=centring, edges=edges)
        points = [n + (centring == "node" and not wraps) for n, wraps in zip(cells, grid.periodic, strict=True)]
        whole = np.arange(1.0, 1 + np.prod(points)).reshape(points)
        fields.append(field)
        wanted.append(expected(grid, field, whole))
        inner = tuple(slice(low, n - high) for (low, high), n in zip(sides, array.shape, strict=True))
        array[inner] = wanted[-1][inner]
    with haloscope.Exchange(grid, fields, strategy=draw.choice(STRATEGIES)) as halo:
        for _ in range(2):
            halo()
    for field, one in zip(fields, wanted, strict=True):
        np.testing.assert_array_equal(field.arrays, one)


def check_holes() -> None:
    """Ghost points towards a hole keep their values; those beyond the grid's edges are filled."""
    hole = min(2, COMM.size)  # of the places along axis 0, of two cells each
    place = COMM.rank + (COMM.rank >= hole)
    grid = haloscope.Grid(
        COMM, (2 * COMM.size + 2, 2), owned=(slice(2 * place, 2 * place + 2), slice(0, 2)), holes=True
    )
    u = np.full((4, 4), -1.0)
    u[1:-1, 1:-1] = COMM.rank + 1
    with haloscope.Exchange(grid, haloscope.Field(u, edges="even"), strategy="direct/p2p", corners=False) as halo:
        halo()

    def ghost(at: int) -> int:
        if not 0 <= at <= COMM.size:  # beyond the grid
            return COMM.rank + 1
        return -1 if at == hole else at + 1 - (at > hole)

    assert (u[0, 1:-1] == ghost(place - 1)).all() and (u[-1, 1:-1] == ghost(place + 1)).all(), u
    assert (u[1:-1, 0] == COMM.rank + 1).all() and (u[1:-1, -1] == COMM.rank + 1).all()


def check_refusals() -> None:
    grid = haloscope.Grid(COMM, (4 * COMM.size, 4 * COMM.size))
    u = grid.zeros()

    def refused(part: str, array: np.ndarray, **options: object) -> None:
        with pytest.raises(haloscope.UsageError) as caught:
            haloscope.Exchange(grid, [haloscope.Field(array, **options)])
        assert part in str(caught.value), str(caught.value)

    refused("edges of array 0 has 'mirrored'; each is one of fixed, even, odd, nearest", u, edges="mirrored")
    refused("for 2 axes", u, edges=["even"])
    refused("edges of array 0 has 3", u, edges=["even", ("odd", 3)])
    refused("for an axis", u, edges=["even", ("odd", "odd", "odd")])
    for dtype in ("i8", "c8", ">f8", "S8", "f2", [("a", "f4"), ("b", "f4")]):
        refused("only reals of 4 or 8 bytes can be negated", grid.zeros(dtype=dtype), edges="odd")
    refused("only reals of 4 or 8 bytes can be negated", np.zeros((*u.shape, 2), "f4"), edges="odd")
    thin = haloscope.Grid(COMM, (4 * COMM.size, 1), process_grid=(COMM.size, 1))
    halo = [(1, 1), (2, 2)]
    with pytest.raises(haloscope.UsageError, match="mirrors 2 layers in x"):
        haloscope.Exchange(thin, haloscope.Field(thin.zeros(halo), halo, edges=["fixed", "even"]))
    refused("no room beyond them", u, edges="even", outer=False)
    if COMM.size > 1:
        refused("the ranks", u, edges="even" if COMM.rank == 0 else "odd")


if __name__ == "__main__":
    check_refusals()
    check_holes()
    check_many(check_one, "edges")
