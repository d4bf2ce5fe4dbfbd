"""Random redistributions: every point that a rank holds in the second split right to the byte, nothing else touched.

Run by ranks: `mpiexec -n N python random_redistributions.py SEED ROUNDS`. All ranks draw the same numbers.
"""

from __future__ import annotations

import itertools
import random

from mpi4py import MPI
from random_exchanges import NONE, Arrays, check_many, split_of

import haloscope

COMM = MPI.COMM_WORLD
STRATEGIES = (
    "direct/auto",
    "direct/p2p",
    "direct:fields=none/persistent",
    "direct:merged/shared:packed",
    "direct/auto:quick",
)


def random_cuts(draw: random.Random, cells: int, parts: int) -> list[int]:
    """Return the first cells of some parts of an axis, and its end."""
    return [0, *sorted(draw.sample(range(1, cells), parts - 1)), cells]


def random_split(draw: random.Random, cells: list[int], periodic: list[bool], order: str) -> haloscope.Grid:
    """Return the grid, split unevenly over all ranks, or some, in a random order."""
    active = draw.randint(1, COMM.size) if draw.random() < 0.4 else COMM.size
    cuts = [random_cuts(draw, n, parts) for n, parts in zip(cells, split_of(draw, active, len(cells)), strict=True)]
    blocks = list(itertools.product(*([slice(a, b) for a, b in itertools.pairwise(line)] for line in cuts)))
    blocks += [(slice(0, 0),) * len(cells)] * (COMM.size - active)
    draw.shuffle(blocks)
    return haloscope.Grid(COMM, cells, periodic=periodic, owned=blocks[COMM.rank], order=order)


class Pair:
    """An array in both splits: the same type, components and centring, different layouts in memory."""

    def __init__(self, draw: random.Random, first: haloscope.Grid, second: haloscope.Grid, slots: int):
        self.source = Arrays(draw, first, slots)
        drawn = (self.source.centring, self.source.dtype, self.source.components)
        self.target = Arrays(draw, second, slots, drawn=drawn)


def check_one(draw: random.Random) -> None:
    dims = draw.randint(1, 3)
    cells = [COMM.size + draw.randint(1, 5) for _ in range(dims)]
    periodic, order, slots = [draw.random() < 0.5 for _ in range(dims)], draw.choice("CF"), draw.randint(1, 2)
    first, second = (random_split(draw, cells, periodic, order) for _ in range(2))
    pairs = [Pair(draw, first, second, slots) for _ in range(draw.randint(1, 3))]
    sources, targets = ([getattr(one, name).field() for one in pairs] for name in ("source", "target"))
    with haloscope.Redistribution(first, second, sources, targets, strategy=draw.choice(STRATEGIES)) as move:
        for turn in range(2 * slots):
            slot = turn % slots
            for number, pair in enumerate(pairs):
                pair.source.fill(slot, 10 * turn + number)
                pair.target.fill(slot, 1000 + turn)
            if draw.random() < 0.5:
                move(slot)
            else:
                move.start(slot)
                move.progress()
                move.finish()
            for number, pair in enumerate(pairs):
                for side in (pair.source, pair.target):
                    side.check(slot, 10 * turn + number, True, NONE[:dims])


if __name__ == "__main__":
    check_many(check_one, "redistribution")
