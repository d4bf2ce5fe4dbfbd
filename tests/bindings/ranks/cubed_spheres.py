"""Random fields on cubed spheres, against the places of their points on a cube: right by every transport.

Run by ranks: `mpiexec -n N python cubed_spheres.py SEED ROUNDS`. All ranks draw the same numbers.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from filled_edges import STRATEGIES, UNTOUCHED
from mpi4py import MPI
from random_exchanges import check_many

import haloscope

COMM = MPI.COMM_WORLD
X, Y, Z = np.eye(3)
# Of each face of a cube with edges of 2: the directions of its centre, of its x and of its y.
FACES = ((X, Y, Z), (Y, -X, Z), (Z, -X, -Y), (-X, -Z, -Y), (-Y, -Z, X), (-Z, Y, X))


def on_cube(face: int, point: list[float]) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Return the place of a point at (x, y) of a face, from -1 to 1, and the directions of x and y there.

    Beyond an edge the way goes on over the next face. None beyond a corner.
    """
    centre, *directions = FACES[face]
    place = centre.copy()
    if all(abs(part) > 1 for part in point):
        return None
    for d, part in enumerate(point):
        place += np.clip(part, -1, 1) * directions[d]
        if abs(part) > 1:
            place -= (abs(part) - 1) * centre
            directions[d] = -np.sign(part) * centre
    return place, directions


class Sphere:
    """A grid of random blocks of a sphere, and random fields. Lists of numbers are by x, y, z."""

    def __init__(self, draw: random.Random):
        self.edge, self.order, self.levels = draw.randint(2, 5), draw.choice("CF"), draw.choice((None, 1, 3))
        self.dims = 2 if self.levels is None else 3
        cells = [6 * self.edge, self.edge, self.levels][: self.dims]
        rows, columns = draw.randint(1, self.edge - 1), draw.randint(1, self.edge - 1)
        owned: list[list] = [[] for _ in range(COMM.size)]
        for face in range(6):
            for x in (slice(0, columns), slice(columns, self.edge)):
                for y in (slice(0, rows), slice(rows, self.edge)):
                    block = [slice(x.start + face * self.edge, x.stop + face * self.edge), y, slice(0, self.levels)]
                    owned[draw.randrange(COMM.size)].append(self.by_axis(block[: self.dims]))
        self.grid = haloscope.Grid(
            COMM,
            self.by_axis(cells),
            periodic=self.by_axis([False, False, True][: self.dims]),
            owned=owned[COMM.rank],
            order=self.order,
            panels=haloscope.cubed_sphere(self.edge, self.levels, self.order),
        )

    def by_axis(self, values: list) -> list:
        """Turn values by dimension into values by axis, or back."""
        return values if self.order == "F" else values[::-1]

    def fields_of(self, draw: random.Random) -> list[dict]:
        """Return the words of fields: scalars in cells and at nodes, and both components of a vector."""
        axes = self.by_axis(list(range(self.dims)))  # of x, y, z
        kinds = [{"centring": "cell"}, {"centring": "node"}]
        on_faces = draw.random() < 0.5
        wind = [
            {"centring": f"face-{axis}" if on_faces else "cell", "vector": "wind", "along": axis} for axis in axes[:2]
        ]
        fields = draw.choice(([kinds[0]], kinds, wind, [*wind, kinds[1]]))
        sides = [[(draw.randint(0, 2), draw.randint(0, 2)) for _ in range(self.dims)] for _ in fields]
        return [one | {"halo": halo} for one, halo in zip(fields, sides, strict=True)]

    def value(self, face: int, field: haloscope.Field, point: list[int]) -> float:
        """Return the value of a point, by dimension, counted from the first cell of its face; UNTOUCHED: none."""
        at_faces = [field.centring in ("node", f"face-{axis}") for axis in self.by_axis(list(range(self.dims)))]
        found = on_cube(face, [(2 * n + 1 - on) / self.edge - 1 for n, on in zip(point[:2], at_faces[:2], strict=True)])
        if found is None:
            return UNTOUCHED
        place, directions = found
        level = point[2] % self.levels if self.levels else 0
        numbers = (1 + level) * np.array([1.0, 10.0, 100.0]) + place
        if field.vector:
            return float(numbers @ directions[self.by_axis(list(range(self.dims)))[field.along]])
        return float(numbers @ place)

    def set_points(self, block: haloscope.grid.Block, field: haloscope.Field) -> np.ndarray:
        """Set the owned points of a block, and return the array that an exchange makes of it."""
        right = np.empty_like(field.arrays)
        first = self.by_axis([part.start for part in block.owned])
        face = first[0] // self.edge
        for at in np.ndindex(right.shape):
            place = [n - low for n, (low, _) in zip(at, field.halo, strict=True)]
            own = all(
                0 <= n < size - low - high for n, size, (low, high) in zip(place, right.shape, field.halo, strict=True)
            )
            point = [n + start for n, start in zip(self.by_axis(place), first, strict=True)]
            point[0] -= face * self.edge
            right[at] = self.value(face, field, point)
            field.arrays[at] = right[at] if own else UNTOUCHED
        return right


def check_one(draw: random.Random) -> None:
    sphere = Sphere(draw)
    kinds, strategy = sphere.fields_of(draw), draw.choice(STRATEGIES)
    blocks = [block for block in sphere.grid.blocks for _ in kinds]
    fields = [
        haloscope.Field(block.zeros(words["halo"], centring=words["centring"]), **words)
        for block, words in zip(blocks, kinds * len(sphere.grid.blocks), strict=True)
    ]
    wanted = [sphere.set_points(block, field) for block, field in zip(blocks, fields, strict=True)]
    with haloscope.Exchange(sphere.grid, fields, strategy=strategy.replace("ordered", "direct")) as halo:
        for _ in range(2):
            halo()
    for field, one in zip(fields, wanted, strict=True):
        np.testing.assert_allclose(field.arrays, one, rtol=1e-12)


def check_refusals() -> None:
    sphere = haloscope.cubed_sphere(4)
    assert len(sphere.boxes) == 6 and sphere.seams[0] == haloscope.Seam((0, 1, "high"), (1, 1, "low"))
    for change, part in (
        ({"panels": sphere.boxes}, "pass a Panels, as"),
        ({"periodic": (True, False)}, "not periodic in x and y"),
        (
            {"panels": haloscope.Panels(sphere.boxes, [haloscope.Seam((0, 2, "low"), (1, 0, "low"))])},
            "x and y are axes 0 and 1",
        ),
        ({"panels": haloscope.Panels(sphere.boxes, [((0, 1, "low"), (1, 0, "low"))])}, "pass a Seam"),
        ({"panels": haloscope.Panels([(slice(0, 4),)], [])}, "pass a slice for each of the 2 axes"),
        ({"panels": haloscope.Panels([(slice(0, 4), slice(4))], [])}, "pass its first cell and its end"),
    ):
        with pytest.raises(haloscope.UsageError, match=part):
            haloscope.Grid(COMM, (4, 24), **({"panels": sphere} | change))
    for words, part in (
        ((0,), "at least 1"),
        ((2**62,), "10.15 at most"),
        ((4, None, "f"), "order is 'f'"),
    ):
        with pytest.raises(haloscope.UsageError, match=part):
            haloscope.cubed_sphere(*words)
    row = haloscope.Panels([(slice(0, 2), slice(0, 2**33))], [])
    assert haloscope.Grid(COMM, (2, 2**33), panels=row, process_grid=(1, COMM.size)).cells == (2, 2**33)
    deep = haloscope.Panels([(slice(0, 2), slice(0, 4), slice(0, 4))], [haloscope.Seam((0, 0, "low"), (0, 0, "high"))])
    with pytest.raises(haloscope.UsageError, match="x and y are axes 1 and 2"):
        haloscope.Grid(COMM, (2, 4, 4), panels=deep)
    faces = [(slice(0, 4), slice(4 * face, 4 * face + 4)) for face in range(6)]
    grid = haloscope.Grid(COMM, (4, 24), panels=sphere, owned=faces[COMM.rank :: COMM.size])
    for block in grid.blocks:
        assert block._inner_sides([(1, 1), (1, 1)]) == [(1, 1), (1, 1)]  # a sphere has no edges
    arrays = [block.zeros() for block in grid.blocks]
    for words, part in (
        ({"vector": "wind", "along": 2}, "an axis from 0 to 1"),
        ({"vector": 3}, "component 0 of vector 3"),
        ({"vector": "wind"}, "exchange the components together"),
    ):
        with pytest.raises(haloscope.UsageError, match=part):
            haloscope.Exchange(grid, [haloscope.Field(array, **words) for array in arrays])
    twice = [haloscope.Field(block.zeros(), vector="wind") for block in grid.blocks for _ in range(2)]
    with pytest.raises(haloscope.UsageError, match="are both component y of one vector"):
        haloscope.Exchange(grid, twice)


if __name__ == "__main__":
    check_refusals()
    check_many(check_one, "sphere")
