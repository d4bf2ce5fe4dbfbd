"""Random accumulations through the Python binding: exact transposes, the same bits by every strategy and for all
holders.

Run by ranks: `mpiexec -n N python random_accumulations.py SEED ROUNDS`. All ranks draw the same numbers.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import random_exchanges
from mpi4py import MPI

import haloscope
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD
TYPES = ("i1", "u2", "i4", "u4", "i8", "f4", "f8", "c8", "c16")
STRATEGIES = (
    "reference",
    "ordered/p2p",
    "ordered:self-first/p2p:testany",
    "ordered:merged,fields=none/persistent:datatype",
    "direct/p2p:datatype",
    "direct:merged/persistent",
    "direct/shared:packed",
    "direct/auto",
    None,
)


def numbers(array: np.ndarray) -> np.ndarray:
    """Return the numbers of an array as integers that wrap around at 2^64; those of reals must be whole."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return flat.astype(np.int64).view(np.uint64) if flat.dtype.kind == "f" else flat.astype(np.uint64)


def product(one: np.ndarray, other: np.ndarray) -> int:
    """Return the inner product over all ranks, modulo what the array's integers wrap around at."""
    mine = int((numbers(one) * numbers(other)).sum(dtype=np.uint64))
    bits = 8 * one.itemsize if one.dtype.kind in "iu" else 64
    return int(COMM.allreduce(mine)) % 2**bits


def whole_numbers(draw: np.random.Generator, like: np.ndarray) -> np.ndarray:
    if like.dtype.kind in "iu":
        return np.frombuffer(draw.bytes(like.nbytes), like.dtype).reshape(like.shape)
    return parts(draw, like, lambda size: draw.integers(-100, 101, size))


def fractions(draw: np.random.Generator, like: np.ndarray) -> np.ndarray:
    return whole_numbers(draw, like) if like.dtype.kind in "iu" else parts(draw, like, draw.random)


def parts(draw: np.random.Generator, like: np.ndarray, make: Any) -> np.ndarray:
    """Return an array of reals, or of complex numbers of two each."""
    pairs = 2 if like.dtype.kind == "c" else 1
    return make(like.size * pairs).astype(np.zeros(1, like.dtype).real.dtype).view(like.dtype).reshape(like.shape)


class Held:
    """The points of a field's grid: those of nodes and faces between blocks are held by several ranks."""

    def __init__(self, field: random_exchanges.Arrays):
        index, _, sides = field.global_points()
        grid, points = field.grid, field.grid.points(field.centring)
        self.shape = tuple(n + m - k for n, m, k in zip(grid.cells, points, grid.shape, strict=True))
        self.index = np.ix_(*(np.clip(at, 0, n - 1) for at, n in zip(index, self.shape, strict=True)))
        self.own = random_exchanges.all_of(tuple(side == 0 for side in sides))
        again = np.zeros(field.shape, bool)
        for axis, (low, _) in enumerate(field.sides):
            way = [-1 if other == axis else 0 for other in range(len(points))]
            if points[axis] > grid.shape[axis] and grid.neighbour(way) >= 0:
                np.moveaxis(again, axis, 0)[low] = True
        self.again = self.own & again  # where the lower neighbour holds them too

    def alike(self, everywhere: np.ndarray) -> np.ndarray:
        """Return the array of a rank, of one of the whole grid."""
        return everywhere[self.index]

    def once(self, array: np.ndarray) -> np.ndarray:
        """Return an array in which each point of the grid counts on one rank."""
        copy = array.copy()
        copy[self.again] = 0
        return copy

    def agree(self, array: np.ndarray) -> bool:
        """Return whether all holders of each point have the same numbers."""
        everywhere = np.zeros(self.shape + array.shape[len(self.shape) :], array.dtype)
        mine = self.own & ~self.again
        places = tuple(np.broadcast_to(line, mine.shape)[mine] for line in self.index)
        everywhere[places] = array[mine]
        parts = COMM.allgather(everywhere)
        return bool((self.alike(sum(parts[1:], parts[0]))[self.own] == array[self.own]).all())


def check_transpose(
    halo: haloscope.Exchange, fields: list, slot: int, draw: np.random.Generator, common: np.random.Generator
) -> None:
    """Compare both sides of <E x, y> = <x, E^T y>, for numbers x that all holders of a point have."""
    arrays, held = [field.arrays[slot] for field in fields], [Held(field) for field in fields]
    ys = [whole_numbers(draw, array) for array in arrays]
    xs = []
    for array, points in zip(arrays, held, strict=True):
        components = array.shape[len(points.shape) :]
        xs.append(points.alike(whole_numbers(common, np.zeros(points.shape + components, array.dtype))))
    for array, x in zip(arrays, xs, strict=True):
        array[...] = x
    halo(slot)
    left = [product(array, y) for array, y in zip(arrays, ys, strict=True)]
    for array, y in zip(arrays, ys, strict=True):
        array[...] = y
    if draw.random() < 0.5:
        halo.accumulate(slot)
    else:
        halo.start_accumulate(slot)
        halo.progress()
        halo.finish()
    right = [product(points.once(x), array) for array, x, points in zip(arrays, xs, held, strict=True)]
    assert left == right, f"{left} and {right} of {[array.dtype for array in arrays]}"
    assert all(points.agree(array) for array, points in zip(arrays, held, strict=True)), "holders have different sums"
    assert all(field.gaps_untouched(slot) for field in fields), "bytes between points have changed"


def check_one(draw: random.Random) -> None:
    grid, slots, corners = random_exchanges.random_grid(draw), draw.randint(1, 2), draw.random() < 0.7
    fields = [random_exchanges.Arrays(draw, grid, slots) for _ in range(draw.randint(1, 3))]
    seed = draw.randrange(2**32)
    results = []
    for strategy in STRATEGIES:
        values, common = np.random.default_rng([seed, COMM.rank]), np.random.default_rng(seed)
        with haloscope.Exchange(grid, [f.field() for f in fields], strategy=strategy, corners=corners) as halo:
            for turn in range(2 * slots):
                slot = turn % slots
                if turn == slots:
                    halo.rebind([field.renew(slot) for field in fields], slot)
                check_transpose(halo, fields, slot, values, common)
            for field in fields:
                field.arrays[0][...] = fractions(values, field.arrays[0])
            halo.accumulate()
            assert all(Held(field).agree(field.arrays[0]) for field in fields), "holders have different bits"
            results.append([field.arrays[0].tobytes() for field in fields])
        assert results[-1] == results[0], f"{strategy} gives other bits than {STRATEGIES[0]}"
    if grid.comm is not COMM:
        grid.comm.Free()


def check_refusals() -> None:
    grid = haloscope.Grid(COMM, (8 * COMM.size, 9), periodic=True)
    odd = ("?", "V8", "S4", "f2", "longdouble", "clongdouble", ">f8", ">i4", "m8[s]", [("a", "f4"), ("b", "i4")])
    for dtype in odd:
        array = grid.zeros(dtype=dtype)
        fields = [grid.zeros(), haloscope.Field(array, name="odd one")]
        with haloscope.Exchange(grid, fields, strategy="ordered/p2p") as halo:
            for call in (halo.accumulate, halo.start_accumulate):
                try:
                    call()
                except UsageError as problem:
                    text = f"odd one has elements of type {array.dtype}, which cannot be added"
                    assert str(problem).startswith(text), problem  # noqa: PT017 (no pytest on these ranks)
                else:
                    raise AssertionError(f"{dtype} was accumulated")
            halo()


if __name__ == "__main__":
    random_exchanges.TYPES = TYPES
    check_refusals()
    random_exchanges.check_many(check_one, "accumulation")
