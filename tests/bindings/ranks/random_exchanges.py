"""Random exchanges through the Python binding: every ghost right to the byte, everything else untouched.

Run by ranks: `mpiexec -n N python random_exchanges.py SEED ROUNDS`. All ranks draw the same numbers.
"""

from __future__ import annotations

import functools
import itertools
import random
import sys
from collections.abc import Callable
from math import prod

import numpy as np
from mpi4py import MPI

import haloscope

COMM = MPI.COMM_WORLD
TYPES = ("?", "i4", "i8", "f4", "f8", "c16", "V24", "S3", [("a", "f8"), ("b", "i2")])
STRATEGIES = (
    None,
    "ordered/p2p",
    "ordered/persistent:datatype",
    "direct:merged/p2p",
    "direct/shared:packed",
    "direct/auto",
)
CANARY, UNFILLED = 0xA5, 0x5A
NONE = [(0, 0)] * 3


def spread(lines: tuple) -> list:
    """Return each axis's line of numbers in a shape that broadcasts to the whole array."""
    return [line.reshape([-1 if a == axis else 1 for a in range(len(lines))]) for axis, line in enumerate(lines)]


def all_of(lines: tuple) -> np.ndarray:
    return functools.reduce(np.logical_and, spread(lines))


class Arrays:
    """One field: arrays of any strides, a slot each, inside larger blocks of canaries."""

    def __init__(
        self, draw: random.Random, grid: haloscope.Grid, slots: int, roomy: bool = False, drawn: tuple | None = None
    ):
        dims = len(grid.cells)
        self.grid = grid
        centrings = ("cell", "cell", "node", *(f"face-{axis}" for axis in range(dims)))
        self.centring, self.dtype, self.components = drawn or (
            draw.choice(centrings),
            np.dtype(draw.choice(TYPES)),
            draw.choice(((), (), (3,))),
        )
        self.sides = [(draw.randint(0, 2), draw.randint(0, 2)) for _ in range(dims)]
        self.room = self.sides
        if roomy and draw.random() < 0.5:
            self.room = [(low + 1, high + draw.randint(0, 2)) for low, high in self.sides]
        self.shape = tuple(n + sum(side) for n, side in zip(grid.points(self.centring), self.room, strict=True))
        gaps = [draw.choice((1, 1, 2)) for _ in self.shape]
        margins = [draw.choice((0, 1)) for _ in self.shape]
        order = draw.sample(range(dims), dims)
        back = np.array([1, 1, 1, -1])[[draw.randrange(4) for _ in self.shape]]
        inside = tuple(slice(m, m + n * g, g) for n, g, m in zip(self.shape, gaps, margins, strict=True))
        flips = tuple(slice(None, None, int(step)) for step in back)
        point = prod(self.components) * self.dtype.itemsize
        wide = [n * g + 2 * m for n, g, m in zip(self.shape, gaps, margins, strict=True)]
        self.point = point

        def make() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            """Return a block of canaries, the bytes of the points in it, and the array."""
            block = np.full([*(wide[axis] for axis in order), point], CANARY, np.uint8)
            turned = block.transpose(*np.argsort(order), dims)[inside][flips]
            typed = block.view(self.dtype).reshape(
                *block.shape[:-1], *self.components, *([] if self.components else [1])
            )
            typed = typed.transpose(*np.argsort(order), dims)[inside][flips]
            return block, turned, typed if self.components else typed[..., 0]

        self.make = make
        self.blocks, self.raw, self.arrays = map(list, zip(*(make() for _ in range(slots)), strict=True))

    def renew(self, slot: int) -> np.ndarray:
        """Return a new array for a slot, alike but elsewhere."""
        self.blocks[slot], self.raw[slot], self.arrays[slot] = self.make()
        return self.arrays[slot]

    def field(self) -> haloscope.Field:
        room = None if self.room == self.sides else self.room
        centring = self.centring if len(self.arrays) > 1 else None  # which the shape has, too
        return haloscope.Field(tuple(self.arrays), halo=self.sides, centring=centring, room=room)

    def global_points(self) -> tuple:
        """Return per axis the global index of each local point, whether it is inside the grid, and -1, 0, 1: its
        side.
        """
        found = []
        for axis, (low, _) in enumerate(self.room):
            owned, cells = self.grid.owned[axis], self.grid.cells[axis]
            mine = 0 if 0 in self.grid.shape else self.grid.points(self.centring)[axis]
            local = np.arange(self.shape[axis]) - low
            at = local + owned.start
            last = cells - 1 + (self.grid.points(self.centring)[axis] - self.grid.shape[axis])
            inside = np.full(at.shape, True) if self.grid.periodic[axis] else (at >= 0) & (at <= last)
            found.append(
                (at % cells if self.grid.periodic[axis] else at, inside, np.where(local < 0, -1, local >= mine))
            )
        return tuple(zip(*found, strict=True))

    def values(self, tag: int) -> np.ndarray:
        """Return the bytes that each local point has by its global indices."""
        index, _, _ = self.global_points()
        number = np.full(self.shape, tag, np.uint64)
        for line in spread(index):
            number = (number ^ line.astype(np.uint64)) * np.uint64(0xD6E8FEB86659FD93)
        wide = number[..., None] + np.arange((self.point + 7) // 8, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return np.ascontiguousarray(wide).view(np.uint8)[..., : self.point]

    def within(self, layers: list[tuple[int, int]]) -> np.ndarray:
        """Return which local points are owned or within these layers per axis."""
        lines = []
        for (low, _), (below, above), extent, mine in zip(
            self.room, layers, self.shape, self.grid.points(self.centring), strict=True
        ):
            local = np.arange(extent) - low
            lines.append((local >= -below) & (local < mine + above))
        return all_of(tuple(lines))

    def filled(self, corners: bool, layers: list[tuple[int, int]] | None = None) -> np.ndarray:
        """Return which local points are right after an exchange of some layers; None: of all."""
        _, inside, sides = self.global_points()
        answer = np.ones(self.shape, bool)
        for way in itertools.product((-1, 0, 1), repeat=len(self.shape)):
            here = all_of(tuple(side == step for side, step in zip(sides, way, strict=True)))
            moved = sum(step != 0 for step in way)
            if self.grid.neighbour(way) < 0 or (moved > 1 and not corners):
                answer[here] = False
        return answer & all_of(inside) & self.within(layers or self.sides)

    def fill(self, slot: int, tag: int) -> None:
        _, _, sides = self.global_points()
        own = all_of(tuple(side == 0 for side in sides))
        self.raw[slot][...] = np.where(own[..., None], self.values(tag), UNFILLED)

    def check(self, slot: int, tag: int, corners: bool, layers: list[tuple[int, int]] | None = None) -> None:
        wanted = np.where(self.filled(corners, layers)[..., None], self.values(tag), UNFILLED)
        wrong = np.argwhere((self.raw[slot] != wanted).any(axis=-1))
        assert wrong.size == 0, f"{len(wrong)} wrong points, the first at {wrong[0]}"
        assert self.gaps_untouched(slot), "bytes between points have changed"

    def gaps_untouched(self, slot: int) -> bool:
        copy = self.raw[slot].copy()
        self.raw[slot][...] = CANARY
        alive = bool((self.blocks[slot] == CANARY).all())
        self.raw[slot][...] = copy
        return alive


def split_of(draw: random.Random, ranks: int, dims: int) -> list[int]:
    split, prime = [1] * dims, 2
    while ranks > 1:
        if ranks % prime:
            prime += 1
        else:
            split[draw.randrange(dims)] *= prime
            ranks //= prime
    return split


def blocks_of(draw: random.Random, split: list[int]) -> tuple[list[int], list[tuple]]:
    """Return the cells of a grid cut unevenly, and its blocks in a random order."""
    cuts = [[0, *itertools.accumulate(draw.randint(2, 5) for _ in range(n))] for n in split]
    blocks = list(itertools.product(*([slice(a, b) for a, b in itertools.pairwise(line)] for line in cuts)))
    draw.shuffle(blocks)
    return [line[-1] for line in cuts], blocks


def random_grid(draw: random.Random, least: int = 2) -> haloscope.Grid:
    """Return a grid of any kind of split. least: cells of a rank's block along an axis, where they are even."""
    dims = draw.randint(1, 3)
    periodic, order = [draw.random() < 0.5 for _ in range(dims)], draw.choice("CF")
    kind = draw.choice(("even", "active", "cartesian", "boxes", "idle"))
    active = {"active": draw.randint(1, COMM.size), "idle": max(1, COMM.size - 1)}.get(kind)
    split = split_of(draw, active or COMM.size, dims)
    cells = [least * n + draw.randint(0, 4) for n in split]
    if kind in ("even", "active"):
        return haloscope.Grid(COMM, cells, periodic=periodic, process_grid=split, order=order, active_ranks=active)
    if kind == "cartesian":
        return haloscope.Grid(COMM.Create_cart(split, periods=periodic), cells, order=order)
    cells, blocks = blocks_of(draw, split)
    while len(blocks) < COMM.size:
        blocks.insert(draw.randrange(COMM.size), (slice(0, 0),) * dims)
    return haloscope.Grid(COMM, cells, periodic=periodic, owned=blocks[COMM.rank], order=order)


def random_part(draw: random.Random, fields: list[Arrays]) -> tuple:
    """Return numbers of fields, a depth for the call, and the layers of each of these fields."""
    only = draw.sample(range(len(fields)), draw.randint(1, len(fields)))
    kind = draw.choice(("all", "one", "sides"))
    if kind == "sides":
        most = [
            [min(pair) for pair in zip(*sides, strict=True)]
            for sides in zip(*(fields[n].sides for n in only), strict=True)
        ]
        depth = [(draw.randint(0, low), draw.randint(0, high)) for low, high in most]
        return only, depth, dict.fromkeys(only, depth)
    cut = 1 if kind == "one" else 2
    layers = {n: [(min(low, cut), min(high, cut)) for low, high in fields[n].sides] for n in only}
    return only, 1 if kind == "one" else None, layers


def check_one(draw: random.Random) -> None:
    grid, slots, corners = random_grid(draw, draw.randint(1, 2)), draw.randint(1, 2), draw.random() < 0.7
    fields = [Arrays(draw, grid, slots, roomy=True) for _ in range(draw.randint(1, 3))]
    with haloscope.Exchange(
        grid, [f.field() for f in fields], strategy=draw.choice(STRATEGIES), corners=corners
    ) as halo:
        for turn in range(2 * slots):
            slot = turn % slots
            how = draw.choice(("stay", "rebind", "call"))
            new = [field.renew(slot) for field in fields] if how != "stay" else []
            if how == "rebind":
                halo.rebind(new, slot)
            for number, field in enumerate(fields):
                field.fill(slot, 10 * turn + number)
            only, depth, layers = (
                random_part(draw, fields) if draw.random() < 0.5 and how != "call" else (None, None, {})
            )
            chosen = only if only is None or draw.random() < 0.5 else [fields[n].arrays[slot] for n in only]
            if how == "call":
                halo(*new, slot=slot)
            elif draw.random() < 0.5:
                halo(slot, only=chosen, depth=depth)
            else:
                halo.start(slot, only=chosen, depth=depth)
                halo.progress()
                halo.finish()
            for number, field in enumerate(fields):
                field.check(
                    slot, 10 * turn + number, corners, layers.get(number, NONE[: len(grid.cells)] if layers else None)
                )
    if grid.comm is not COMM:
        grid.comm.Free()


def check_many(check: Callable[[random.Random], None], name: str) -> None:
    """Make the checks of the command line, SEED ROUNDS; print the one that failed, or that all are right."""
    seed, rounds = map(int, sys.argv[1:])
    for number in range(rounds):
        try:
            check(random.Random(1000 * seed + number))
        except BaseException:
            print(f"rank {COMM.rank}, {name} {number} of seed {seed}:", flush=True)
            raise
    COMM.barrier()
    if COMM.rank == 0:
        print("right")


if __name__ == "__main__":
    check_many(check_one, "exchange")
