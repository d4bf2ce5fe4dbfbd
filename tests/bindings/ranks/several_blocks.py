"""Grids of several blocks a rank: attributes, calls of all kinds, and errors on all ranks.

Run by ranks: `mpiexec -n N python several_blocks.py`. Rank r has r + 2 tiles of a row; the last one of three ranks or
more has none.
"""

from __future__ import annotations

import pathlib
import shutil
import tempfile

import numpy as np
from mpi4py import MPI

import haloscope
from haloscope.errors import UsageError

COMM = MPI.COMM_WORLD
WIDTH, ROWS = 4, 3
COUNTS = [0 if COMM.size > 2 and rank == COMM.size - 1 else rank + 2 for rank in range(COMM.size)]
TOTAL = sum(COUNTS)


def deal() -> list[list[int]]:
    """Return the numbers of each rank's tiles; neighbours in the row mostly belong to different ranks."""
    hands: list[list[int]] = [[] for _ in COUNTS]
    rank = 0
    for tile in range(TOTAL):
        while len(hands[rank % COMM.size]) >= COUNTS[rank % COMM.size]:
            rank += 1
        hands[rank % COMM.size].append(tile)
        rank += 1
    return hands


TILES = deal()[COMM.rank]
CELLS = (ROWS, WIDTH * TOTAL)


def box(tile: int) -> tuple[slice, slice]:
    return slice(0, ROWS), slice(WIDTH * tile, WIDTH * (tile + 1))


def numbers(block: haloscope.grid.Block, layers: int) -> np.ndarray:
    """Return the numbers of a block's cells and of the ghost layers beside it, around the grid along its row."""
    columns = np.arange(block.owned[1].start - layers, block.owned[1].stop + layers) % CELLS[1]
    return np.arange(ROWS)[:, None] * CELLS[1] + columns


def refused(call, *arguments, **options) -> str:
    try:
        call(*arguments, **options)
    except UsageError as problem:
        return str(problem)
    return ""


grid = haloscope.Grid(COMM, CELLS, periodic=(False, True), owned=[box(tile) for tile in TILES])
assert len(grid.blocks) == max(1, len(TILES))
assert [block.owned for block in grid.blocks] == ([box(tile) for tile in TILES] or [(slice(0, 0),) * 2])

# A grid of several blocks a rank has no cells of its own; a grid of one has them as its only block.
assert "use shape of each of its blocks" in refused(lambda: grid.shape)
assert "several blocks" in refused(grid.zeros)
assert "this rank passed 1 and has" in refused(haloscope.sum, grid, grid.blocks[0].zeros(halo=1), halo=1)
for call in (haloscope.sum, haloscope.norm):
    assert "a sum got <" in refused(call, grid.blocks[0], grid.blocks[0].zeros())
single = haloscope.Grid(COMM, (ROWS, COMM.size), owned=[(slice(0, ROWS), slice(COMM.rank, COMM.rank + 1))])
assert single.shape == (ROWS, 1) and single.blocks == (single,)

SIDES = ((0, 0), (1, 1))  # the grid ends above and below
for strategy in (None, "ordered/p2p", "direct:merged/persistent", "direct/shared:packed", "reference"):
    u = [block.zeros(halo=SIDES, dtype="i8") for block in grid.blocks]
    v = [block.zeros(halo=SIDES, dtype="i8") for block in grid.blocks]
    arrays = [array for pair in zip(u, v, strict=True) for array in pair]
    with haloscope.Exchange(grid, arrays, halo=SIDES, strategy=strategy, corners=False) as halo:
        for turn in range(3):
            for block, one, other in zip(grid.blocks, u, v, strict=True):
                one[...] = other[...] = -1
                if TILES:
                    one[block.inner(SIDES)] = turn + numbers(block, 0)
                    other[block.inner(SIDES)] = turn + 1000 * numbers(block, 0)
            halo(only=v if turn == 0 else 1)  # all its arrays name the field as one of them does
            for block, one, other in zip(grid.blocks, u, v, strict=True):
                if TILES:
                    assert (other == turn + 1000 * numbers(block, 1)).all(), (strategy, turn)
                    assert (one[:, 0] == -1).all(), (strategy, turn)
            moved = [array.copy() for array in arrays]
            halo(*moved)
            for n, block in enumerate(grid.blocks):
                if TILES:
                    assert (moved[2 * n] == turn + numbers(block, 1)).all(), (strategy, turn)
            halo.accumulate(only=[moved[0]])
            for n, block in enumerate(grid.blocks):
                if TILES:  # each cell beside another block has come back
                    beside = np.array([2] + [1] * (WIDTH - 2) + [2])
                    assert (moved[2 * n][:, 1:-1] == (turn + numbers(block, 0)) * beside).all(), (strategy, turn)
                    assert (moved[2 * n][:, 0] == 0).all(), (strategy, turn)
            halo.rebind(arrays)
        assert "the exchange has arrays 0 to 1" in refused(halo, only=2)
        halo(only=[u[0], u[-1]])  # one field, also where that is one array
        assert "is twice in a part" in refused(halo, only=[0, 0])

between = [block.zeros(halo=0, centring="node", dtype="i8") for block in grid.blocks]
for array in between:
    array[...] = COMM.rank + 10
with haloscope.Exchange(grid, [haloscope.Field(one, halo=0, centring="node") for one in between]) as halo:
    halo.share()
    halo.accumulate()
everyone = [(tile, rank) for rank, tiles in enumerate(COMM.allgather(TILES)) for tile in tiles]
owner = dict(everyone)
for tile, array in zip(TILES, between, strict=False):
    # The owner of an end of a tile is the rank of the tile that begins there; then both holders add its value.
    wanted = [10 + owner[tile]] * WIDTH + [10 + owner[(tile + 1) % TOTAL]]
    wanted[0], wanted[-1] = 2 * wanted[0], 2 * wanted[-1]
    assert (array == wanted).all(), (tile, array, wanted)

# Fields move to other splits and back, through memory and through files.
rows = haloscope.Grid(COMM, CELLS, periodic=(False, True), process_grid=(1, COMM.size))
u = [block.zeros(halo=1) for block in grid.blocks]
v = [block.zeros(halo=1, dtype="i4") for block in grid.blocks]
for block, one, other in zip(grid.blocks, u, v, strict=True):
    if TILES:
        one[block.inner()] = numbers(block, 0)
        other[block.inner()] = 2 * numbers(block, 0)
sources = [array for pair in zip(u, v, strict=True) for array in pair]
targets = [rows.zeros(halo=1), rows.zeros(halo=1, dtype="i4")]
haloscope.redistribute(grid, rows, sources, targets)
for factor, array in zip((1, 2), targets, strict=True):
    assert (array[rows.inner()] == factor * numbers(rows, 0)).all()
moved = [np.zeros_like(array) for array in sources]
with haloscope.Redistribution(rows, grid, targets, moved) as back:
    back()
    assert all((one == other).all() for one, other in zip(moved, sources, strict=True))
path = COMM.bcast(tempfile.mkdtemp()) + "/u.npy"
haloscope.write(grid, u, path)
read = [np.zeros_like(one) for one in u]
haloscope.read(grid, read, path)
assert all((one == other).all() for one, other in zip(u, read, strict=True))
if COMM.rank == 0:
    assert (np.load(path) == np.arange(CELLS[0] * CELLS[1]).reshape(CELLS)).all()
    shutil.rmtree(pathlib.Path(path).parent)
short = u[:-1] if COMM.rank == 0 else u
assert "takes the array of each block" in refused(haloscope.write, grid, short, path)
assert "pass the same arrays for each block" in refused(haloscope.redistribute, grid, rows, sources[:-1], targets)

empty = haloscope.Grid(COMM, (4, 4), owned=[(slice(0, 4), slice(0, 4))] if COMM.rank == 0 else [])
pairs = np.full([*empty.blocks[0].shape, 2], 2.0)  # without cells: strides of 0
assert haloscope.norm(empty, pairs, halo=0) == np.sqrt(2 * 16 * 4.0)

# Errors, on all ranks.
others = [np.zeros_like(array) for array in sources]
if COMM.rank == 0:
    others[2] = others[2].astype("c8")
    u[1] = u[1].astype(">f8")
for call in (
    lambda: haloscope.redistribute(grid, rows, others, targets),
    lambda: haloscope.write(grid, u, path),
    lambda: haloscope.read(grid, u, path),
    lambda: haloscope.norm(grid, [u[0], *(one.astype("f4") for one in read[1:])] if COMM.rank == 0 else read),
):
    assert "of block 1 has elements of type" in refused(call)
wave = [one.astype("c16") if COMM.rank == 0 else one for one in read]
if COMM.size > 1:
    assert "the ranks add up different fields" in refused(haloscope.sum, grid, wave)
assert "a sum of real and complex numbers" in refused(
    haloscope.sum, grid, [wave[0], *read[1:]] if COMM.rank == 0 else read
)

# Errors of openings, on all ranks.
lacking = [block.zeros(halo=1) for block in grid.blocks][: max(1, len(TILES) - 1)]
assert "arrays for" in refused(haloscope.Exchange, grid, lacking)
overlap, empty = [box(tile) for tile in TILES], [box(tile) for tile in TILES]
if COMM.rank == 0:
    overlap[1] = overlap[0]
    empty.append((slice(0, 0), slice(0, 0)))
assert "both own cell" in refused(haloscope.Grid, COMM, CELLS, owned=overlap)
assert "has no cells; leave empty blocks out" in refused(haloscope.Grid, COMM, CELLS, owned=empty)
kinds = [block.zeros(halo=1) for block in grid.blocks]
if COMM.rank == 0:
    kinds[1] = grid.blocks[1].zeros(halo=1, dtype="i8")
assert "elements of type int64, and the field of block 0 in its place float64" in refused(
    haloscope.Exchange, grid, kinds
)
wider = [haloscope.Field(block.zeros(halo=2), halo=1, room=2) for block in grid.blocks]
named = [haloscope.Field(block.zeros(halo=1), name="u") for block in grid.blocks]
if COMM.rank == 0:
    wider[1] = haloscope.Field(grid.blocks[1].zeros(halo=2), halo=2)
    named[1] = haloscope.Field(grid.blocks[1].zeros(halo=1), name="v")
assert "a halo of [(2, 2), (2, 2)]" in refused(haloscope.Exchange, grid, wider)
assert "has the name v, and the field of block 0 in its place u" in refused(haloscope.Exchange, grid, named)
assert not hasattr(grid, "shape") and hasattr(single, "shape")
assert "or for several blocks a list" in refused(haloscope.Grid, COMM, CELLS, owned=[(0, 4)])
assert "pass a slice for each axis" in refused(haloscope.Grid, COMM, CELLS, owned=[(0, 4)])
assert "leave reorder out" in refused(haloscope.Grid, COMM, CELLS, owned=[box(tile) for tile in TILES], reorder=True)
if COMM.rank == 0:
    print("right")
