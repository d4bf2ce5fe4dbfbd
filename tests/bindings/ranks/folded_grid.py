"""Random folded grids and fields, against the positions of their points: right by every transport.

Run by ranks: `mpiexec -n N python folded_grid.py SEED ROUNDS`. All ranks draw the same numbers.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from filled_edges import EDGES, STRATEGIES, UNTOUCHED, image
from mpi4py import MPI
from random_exchanges import check_many

import haloscope

COMM = MPI.COMM_WORLD


def original(cells: list[int], fold: str, halves: list[int], point: list[int]) -> tuple[list[int], bool]:
    """Return the point that a point is a copy of, and whether it is one. All by x, y, z.

    halves: distance of the field's points from the low faces of cells, in half cells.
    """
    x, y, *rest = point
    mirrored_y = 2 * cells[1] - (fold == "cell") - halves[1] - y
    mirrored_x = (cells[0] if fold == "node" else 1) - halves[0] - x
    x, mirrored_x = x % cells[0], mirrored_x % cells[0]
    if y > mirrored_y or (y == mirrored_y and x > mirrored_x):
        return [mirrored_x, mirrored_y, *rest], True
    return [x, y, *rest], False


def value(grid: haloscope.Grid, field: haloscope.Field, at: list[int]) -> tuple[float, bool]:
    """Return the value of a point, by axis in global numbers, and whether the fold makes it a copy; UNTOUCHED where no
    exchange fills it.
    """
    node = field.centring == "node"

    def by_dimension(values):  # x, y, z
        return list(values) if grid.order == "F" else list(reversed(values))

    cells, periodic, edges = by_dimension(grid.cells), by_dimension(grid.periodic), by_dimension(field.edges)
    halves = [0 if node else 2 if high else 1 for high in by_dimension(field.high_faces)]
    point, sign = by_dimension(at), 1
    for d in range(1, len(at)):
        if d == 2 or point[d] < 0:
            point[d], by_edge = image(point[d], cells[d] + (node and not periodic[d]), node, edges[d], periodic[d])
            sign *= by_edge
    point, copied = original(cells, grid.fold, halves, point)
    if copied and edges[1][1] == "odd":
        sign = -sign
    number = sum(one * 100**d for d, one in enumerate(point))
    return (sign * (1.0 + number) if sign else UNTOUCHED), copied


def random_field(draw: random.Random, grid: haloscope.Grid) -> haloscope.Field:
    dims = len(grid.cells)
    y = 1 if grid.order == "F" else dims - 2
    centring = draw.choice(("cell", "node"))
    sides = [(draw.randint(0, 2), draw.randint(0, 2)) for _ in range(dims)]
    edges = [(draw.choice(EDGES), draw.choice(EDGES)) for _ in range(dims)]
    edges[y] = (edges[y][0], draw.choice(("fixed", "even", "odd")))
    faces = [centring == "cell" and draw.random() < 0.5 for _ in range(dims)]
    array = grid.zeros(sides, centring=centring)
    return haloscope.Field(array, sides, centring, edges=edges, high_faces=faces)


def set_points(grid: haloscope.Grid, field: haloscope.Field) -> np.ndarray:
    """Set the owned points that the fold does not repeat, and return the array that an exchange makes of it."""
    right = np.empty_like(field.arrays)
    for at in np.ndindex(right.shape):
        place = [n - low for n, (low, _) in zip(at, field.halo, strict=True)]
        own = all(
            0 <= n < size - low - high for n, size, (low, high) in zip(place, right.shape, field.halo, strict=True)
        )
        point = [part.start + n for part, n in zip(grid.owned, place, strict=True)]
        right[at], copied = value(grid, field, point)
        field.arrays[at] = right[at] if own and not copied else UNTOUCHED
    return right


def check_one(draw: random.Random) -> None:
    dims, order, fold = draw.randint(2, 3), draw.choice("CF"), draw.choice(("node", "cell"))
    cells = [3 * COMM.size + draw.randint(0, 3) for _ in range(dims)]
    periodic = [True, False, draw.random() < 0.5][:dims]
    grid = haloscope.Grid(COMM, cells, periodic=periodic if order == "F" else periodic[::-1], order=order, fold=fold)
    assert grid.fold == fold
    fields = [random_field(draw, grid) for _ in range(draw.randint(1, 3))]
    wanted = [set_points(grid, field) for field in fields]
    others = [field.arrays.copy(order=order) for field in fields]
    with haloscope.Exchange(grid, fields, strategy=draw.choice(STRATEGIES)) as halo:
        for _ in range(2):
            halo()
        halo(*others)
    for field, other, one in zip(fields, others, wanted, strict=True):
        np.testing.assert_array_equal(field.arrays, one)
        np.testing.assert_array_equal(other, one)


def check_refusals() -> None:
    for fold, periodic, part in (
        ("high", (False, True), "fold is 'high'"),
        ("node", (True, True), "folds at the high"),
    ):
        with pytest.raises(haloscope.UsageError, match=part):
            haloscope.Grid(COMM, (6, 6 * COMM.size), periodic=periodic, fold=fold)
    grid = haloscope.Grid(COMM, (6, 6 * COMM.size), periodic=(False, True), fold="cell")
    for options, part in (
        ({"edges": "nearest"}, "edge nearest where"),
        ({"high_faces": [True]}, "high_faces of array 0"),
    ):
        with pytest.raises(haloscope.UsageError, match=part):
            haloscope.Exchange(grid, haloscope.Field(grid.zeros(), **options))


if __name__ == "__main__":
    check_refusals()
    check_many(check_one, "fold")
